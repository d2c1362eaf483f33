"""Networks on the meta device, which has shapes and no values: nothing is made elsewhere or read back."""

import sys
from dataclasses import replace
from functools import partial

import pytest
import torch

from taylorformer_forecast.core.sampling import sample_paths
from taylorformer_forecast.models.contiformer import ContiFormer
from taylorformer_forecast.models.contiformer_paths import ContiFormerPaths
from taylorformer_forecast.models.lam import LAMTransformer
from taylorformer_forecast.models.taylorformer import Taylorformer
from taylorformer_forecast.models.tnp import TNPA
from taylorformer_forecast.models.unn import UNN


def test_loss_gradients_and_sampling_need_no_values(any_case):
    net, w = any_case.net().to("meta"), any_case.window(missing="entries").to("meta")
    net.train()
    loss = net.loss(w)
    loss.backward()
    assert loss.device.type == "meta"
    used = [p.grad for p in net.parameters() if p.grad is not None]
    assert used
    assert all(gradient.device.type == "meta" for gradient in used)
    paths = sample_paths(net.eval(), w, 3).paths
    assert paths.device.type == "meta"
    assert paths.shape == (len(w.y), 3, w.n_targets, w.y.shape[2])


@pytest.mark.parametrize(
    "build",
    [Taylorformer, TNPA, UNN, ContiFormer, ContiFormerPaths, partial(LAMTransformer, 7, 5)],
    ids=["taylorformer", "tnp", "unn", "contiformer", "contiformer paths", "lam"],
)
def test_networks_are_built_without_values(build, make_window):
    with torch.device("meta"):
        net = build()
    w = make_window().to("meta")
    w = replace(w, series=torch.zeros(w.y.shape[:2], dtype=torch.long, device="meta"))
    assert all(value.is_meta for value in (*net.parameters(), *net.buffers()))
    assert net.loss(w).is_meta
    assert sample_paths(net.eval(), w, 3).paths.is_meta


@pytest.mark.parametrize("kind", ["bool", "item"])
def test_the_meta_device_has_no_values(kind):
    with pytest.raises((RuntimeError, NotImplementedError)):
        getattr(torch.ones(1, device="meta"), {"bool": "__bool__", "item": "item"}[kind])()


@pytest.mark.usefixtures("float64")
def test_shortcuts_that_an_accelerator_does_not_take_change_nothing(any_case, monkeypatch):
    net, w = any_case.net().eval(), any_case.window()

    def results():
        loss = net.loss(w)
        gradients = torch.autograd.grad(
            loss, [p for p in net.parameters() if p.requires_grad], allow_unused=True
        )
        paths = sample_paths(net, w, 3, torch.Generator().manual_seed(0)).paths
        return [loss, paths, *(g for g in gradients if g is not None)]

    usual, patched = results(), 0
    for name, module in list(sys.modules.items()):
        if name.startswith("taylorformer_forecast.") and hasattr(module, "holds_everywhere"):
            monkeypatch.setattr(module, "holds_everywhere", lambda mask, wait=False: False)
            patched += 1
    assert patched > 5
    torch.testing.assert_close(results(), usual, rtol=1e-6, atol=1e-8)
