"""Conditions and `{{templates}}`: a small, total language over JSON, in syntax a subset of CEL.

Reading order: `syntax` (the tree) → `lexer` → `parser` → `evaluate` with `operations` → `expression`,
`condition`, `template` (what the engine uses) → `references` (what the validator uses) → `secrets`.
docs/expressions.md describes the language for its users.
"""

from wfcelery.core.expressions.condition import Condition, Verdict, parse_condition
from wfcelery.core.expressions.evaluate import MissingValue, Scope
from wfcelery.core.expressions.expression import Expression, parse
from wfcelery.core.expressions.references import Reference
from wfcelery.core.expressions.secrets import (
    SecretRef,
    Secrets,
    decode_secrets,
    encode_secrets,
    resolve_secrets,
)
from wfcelery.core.expressions.template import Rendered, Template, TemplateError, parse_template

__all__ = [
    "Condition",
    "Expression",
    "MissingValue",
    "Reference",
    "Rendered",
    "Scope",
    "SecretRef",
    "Secrets",
    "Template",
    "TemplateError",
    "Verdict",
    "decode_secrets",
    "encode_secrets",
    "parse",
    "parse_condition",
    "parse_template",
    "resolve_secrets",
]
