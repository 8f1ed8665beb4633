"""Find speech with Silero VAD's ONNX path, frame by frame, as its own documentation shows; print time stamps."""

import json

import torch
from silero_vad import get_speech_timestamps, load_silero_vad

torch.manual_seed(0)
rate = 16000
time_s = torch.arange(3 * rate) / rate
# Pulses of a voice's pitch through two formants, between stretches of faint noise.
pulses = torch.sin(2 * torch.pi * 120 * time_s).clamp(min=0.9) - 0.9
voice = pulses * (torch.sin(2 * torch.pi * 700 * time_s) + torch.sin(2 * torch.pi * 1200 * time_s)) * 5
wave = 0.001 * torch.randn(3 * rate)
wave[rate : 2 * rate] += voice[rate : 2 * rate]

model = load_silero_vad(onnx=True)
print(json.dumps([model(wave[i : i + 512], rate).item() for i in range(0, 90 * 512, 512)]))
model.reset_states()
print(json.dumps(get_speech_timestamps(wave, model, threshold=0.1)))
