"""Report pages: one HTML file that needs nothing else, with its pictures inside."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence

from matplotlib.figure import Figure

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;color:#22252b;max-width:1060px;margin:2rem auto;padding:0 1rem;background:#fff}
h1{font-size:1.6rem;margin-bottom:.2rem}h2{font-size:1.15rem;margin-top:2.2rem;border-bottom:1px solid #ddd}
table{border-collapse:collapse;margin:.6rem 0;font-variant-numeric:tabular-nums}
th,td{padding:.22rem .6rem;text-align:right;border-bottom:1px solid #eceef1}
th:first-child,td:first-child{text-align:left}
thead th{border-bottom:2px solid #aab}figure{display:inline-block;margin:.4rem .6rem .8rem 0;vertical-align:top}
figcaption{font-size:.86rem;max-width:500px;color:#444}img{max-width:100%;border:1px solid #e3e5e9}
.say{font-size:1.05rem;background:#f3f6f9;border-left:4px solid #2a6f97;padding:.6rem .9rem}small{color:#666}
"""


def page(title: str, parts: Sequence[str]) -> str:
    """A whole page of HTML parts."""
    head = f"<meta charset=utf-8><title>{title}</title><style>{_STYLE}</style>"
    return f"<!doctype html><html lang=en>{head}<body>{''.join(parts)}</body></html>"


def figure_of(image: bytes, caption: str, width: int | None = None) -> str:
    """A PNG with its caption, as HTML. width [px]: as large as it is, when left out."""
    data = base64.b64encode(image).decode()
    size = f" width={width}" if width else ""
    return f"<figure><img{size} alt='' src='data:image/png;base64,{data}'><figcaption>{caption}</figcaption></figure>"


def png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()
