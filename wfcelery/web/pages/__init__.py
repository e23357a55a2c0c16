"""The pages, a file for each subject; each lists its doors."""
