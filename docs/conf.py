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


# Of what classes inherit from darts, sktime and skpro, that which users call most.
SHOWN = {
    *("fit", "predict", "save", "load"),
    *("historical_forecasts", "backtest", "residuals", "gridsearch", "untrained_model"),  # darts
    *("predict_residuals", "predict_proba", "score", "transform", "fit_transform", "inverse_transform"),
    *("sample", "mean", "var", "cdf", "ppf", "pdf", "log_pdf", "energy", "plot"),  # of distributions
}
# Of the package's own methods, those that the hosts call and not users.
HIDDEN = {
    *("fit_from_dataset", "generate_fit_predict_encodings", "initialize_encoders"),
    *("get_test_params", "min_input_chunk_length", "spec", "supports_static_covariates"),
}


def is_of_a_host(member):
    """Whether a member has its documentation from darts, sktime, skpro or torch."""
    module = getattr(getattr(member, "fget", member), "__module__", None) or ""
    return not module.startswith(project)


def skip_member(app, what, name, member, skip, options):
    """Leave out what users do not call."""
    return True if name in HIDDEN or (is_of_a_host(member) and name not in SHOWN) else None


def shorten_docstrings_of_hosts(app, what, name, member, options, lines):
    """Of documentation that belongs to a host, keep the first paragraph."""
    if what == "method" and is_of_a_host(member):
        host = member.__module__.partition(".")[0]
        text = "\n".join(lines).strip().partition("\n\n")[0]
        lines[:] = [*text.splitlines(), "", f"As in {host}, whose reference has the parameters.", ""]


def setup(app):
    """Connect the functions above, the latter before numpydoc's."""
    app.connect("autodoc-skip-member", skip_member)
    app.connect("autodoc-process-docstring", shorten_docstrings_of_hosts, priority=100)
