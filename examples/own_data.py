"""Distil your own data for your own network, then use the result."""

import torch
from torch import Tensor, nn

import datadistill as dd


class Mine(nn.Module):
    """Any module from inputs to logits."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(20, 32)
        self.out = nn.Linear(32, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.out(torch.tanh(self.hidden(inputs)))


# Your own data: a pair of tensors, or any torch Dataset of (input, label) pairs.
random = torch.Generator().manual_seed(0)
centres = 2 * torch.randn(3, 20, generator=random)
labels = torch.arange(1500) % 3
inputs = centres[labels] + 1.5 * torch.randn(1500, 20, generator=random)
train, test = (inputs[:1000], labels[:1000]), (inputs[1000:], labels[1000:])

# Three distilled points, one of each class, for any randomly initialised network.
distilled = dd.distill(train, Mine(), steps=1, epochs=3, iterations=300, outer_lr=0.05)
distilled.save("mine.safetensors")
print(distilled)

# Somewhere else: a network trained on these three points alone.
network = dd.load("mine.safetensors").train(Mine())
accuracy = (network(test[0]).argmax(1) == test[1]).float().mean()
print(f"one network: {100 * float(accuracy):.1f} %")
print(dd.evaluate(distilled, test, networks=20))
