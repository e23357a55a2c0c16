# wfcelery with everything that its processes need, as nobody in particular.
# Your tools: build on this image and copy them to /app, or mount them there.
FROM python:3.12-slim

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

COPY pyproject.toml constraints.txt README.md LICENSE /src/
COPY wfcelery /src/wfcelery
# The constraints are for the packages, not for pip and setuptools themselves.
RUN grep -vE '^(pip|setuptools)==' /src/constraints.txt > /src/versions.txt \
    && pip install --constraint /src/versions.txt '/src[postgres,flower,notify,web,mcp]' \
    && rm -rf /src \
    && useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin wfcelery

WORKDIR /app
USER 10001
CMD ["wfcelery", "--help"]
