"""What `make docs` changes in the pages: the front page is README.md, and links out of docs/ become plain text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:  # noqa: ANN401 - a page of mkdocs
    """Return the Markdown of a page as the site shows it."""
    if page.file.src_path == "index.md":
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        markdown = re.sub(r"\]\((?!https?:|docs/|#)[^)]*\)", "](../)", readme).replace("](docs/notebooks)", "](../)")
        markdown = markdown.replace("](docs/", "](")
    return re.sub(r"(?<!!)\[([^\]]+)\]\(\.\./[^)]*\)", r"\1", markdown)
