"""Networks on the meta device, which has shapes and no values: nothing is made elsewhere or read back."""

import pytest
import torch

from taylorformer_forecast.core.sampling import sample_paths


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


@pytest.mark.parametrize("kind", ["bool", "item"])
def test_the_meta_device_has_no_values(kind):
    with pytest.raises((RuntimeError, NotImplementedError)):
        getattr(torch.ones(1, device="meta"), {"bool": "__bool__", "item": "item"}[kind])()
