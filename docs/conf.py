"""Sphinx settings of the site; ``make docs`` builds it."""

import os
import warnings
from hashlib import sha256
from pathlib import Path

import taylorformer_forecast

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small networks: more threads mostly wait
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
warnings.filterwarnings("ignore", module="(darts|sktime|lightning|pytorch_lightning)")

project = "taylorformer_forecast"
author = "The taylorformer_forecast developers"
version = release = taylorformer_forecast.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc"]
exclude_patterns = ["results"]
templates_path = ["templates"]

html_theme = "pydata_sphinx_theme"
html_title = "taylorformer_forecast"
html_theme_options = {
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "navbar_align": "left",
    "footer_end": [],
}
html_sidebars = {"install": [], "faq": [], "genindex": []}  # no pages below them
html_show_sourcelink = False
html_static_path = ["static"]
html_css_files = ["site.css"]

autosummary_generate = True  # into docs/generated, which git ignores
add_module_names = False
autodoc_typehints = "none"  # docstrings have the types
numpydoc_show_class_members = False

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
# A page runs again when its code changes, or the package.
package = Path(taylorformer_forecast.__file__).parent
files = sorted([*package.rglob("*.py"), *package.rglob("*.safetensors")])
state = sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
nb_execution_mode = "cache"
nb_execution_cache_path = str(package.parent / "build/docs-cache" / state)
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_output_stderr = "remove"  # progress and hints of other libraries


def skip_members_of_hosts(app, what, name, member, skip, options):
    """Leave out what classes inherit from sktime, skpro, darts and torch."""
    module = getattr(getattr(member, "fget", member), "__module__", None) or ""
    return True if not module.startswith(project) else None


def setup(app):
    """Connect the function above."""
    app.connect("autodoc-skip-member", skip_members_of_hosts)
