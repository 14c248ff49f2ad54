#!/usr/bin/env python3
"""Writes rope.json: scaled rotation frequencies, computed from the definitions in Hugging Face transformers
(modeling_rope_utils: default, linear, yarn, llama3) and from the way llama.cpp's converter writes rope_freqs.weight.

Needs: pip install numpy.  Usage: make_rope.py > rope.json
"""
import json
import math

import numpy as np


def plain(dim, base):
    return 1.0 / base ** (np.arange(0, dim, 2, dtype=np.float64) / dim)


def linear(dim, base, factor):
    return plain(dim, base) / factor, 1.0


def yarn(dim, base, factor, original, beta_fast=32.0, beta_slow=1.0, attention_factor=None):
    if attention_factor is None:
        attention_factor = 1.0 if factor <= 1 else 0.1 * math.log(factor) + 1.0

    def correction_dim(rotations):
        return dim * math.log(original / (rotations * 2 * math.pi)) / (2 * math.log(base))

    low, high = max(math.floor(correction_dim(beta_fast)), 0), min(math.ceil(correction_dim(beta_slow)), dim - 1)
    if low == high:
        high += 0.001
    ramp = np.clip((np.arange(dim // 2, dtype=np.float64) - low) / (high - low), 0, 1)
    extrapolation = 1 - ramp
    positions = base ** (np.arange(0, dim, 2, dtype=np.float64) / dim)
    return 1 / (factor * positions) * (1 - extrapolation) + 1 / positions * extrapolation, attention_factor


def llama3(dim, base, factor, low_factor, high_factor, original):
    frequencies = plain(dim, base)
    low_wavelength, high_wavelength = original / low_factor, original / high_factor
    wavelength = 2 * math.pi / frequencies
    scaled = np.where(wavelength > low_wavelength, frequencies / factor, frequencies)
    smooth = (original / wavelength - low_factor) / (high_factor - low_factor)
    blended = (1 - smooth) * scaled / factor + smooth * scaled
    medium = ~(wavelength < high_wavelength) & ~(wavelength > low_wavelength)
    return np.where(medium, blended, scaled), 1.0


def converter_factors(dim, base, factor, low_factor, high_factor, original):
    """The divisors that convert_hf_to_gguf.py stores in rope_freqs.weight."""
    divisors = []
    for frequency in plain(dim, base):
        wavelength = 2 * math.pi / frequency
        if wavelength < original / high_factor:
            divisors.append(1.0)
        elif wavelength > original / low_factor:
            divisors.append(factor)
        else:
            smooth = (original / wavelength - low_factor) / (high_factor - low_factor)
            divisors.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(divisors, np.float32)


cases = []


def add(name, dim, base, result, **keys):
    frequencies, attention_factor = result
    cases.append({"name": name, "rotary_dim": dim, "base": base, "keys": keys, "attention_factor": attention_factor,
                  "inverse_frequencies": frequencies.tolist()})


add("plain 64", 64, 1e5, (plain(64, 1e5), 1.0))
add("plain 128", 128, 1e4, (plain(128, 1e4), 1.0))
add("linear", 64, 1e4, linear(64, 1e4, 4.0), type="linear", factor=4.0)
add("yarn", 128, 1e4, yarn(128, 1e4, 16.0, 4096), type="yarn", factor=16.0, original=4096)
add("yarn, other betas", 64, 1e6, yarn(64, 1e6, 4.0, 32768, 24.0, 2.0), type="yarn", factor=4.0, original=32768,
    beta_fast=24.0, beta_slow=2.0)
add("yarn, attention factor", 96, 1e4, yarn(96, 1e4, 8.0, 2048, attention_factor=1.25), type="yarn", factor=8.0,
    original=2048, attention_factor=1.25)
add("yarn, short context", 64, 1e4, yarn(64, 1e4, 2.0, 8), type="yarn", factor=2.0, original=8)
add("llama3", 128, 5e5, llama3(128, 5e5, 8.0, 1.0, 4.0, 8192), type="llama3", factor=8.0, original=8192)
add("llama3, small head", 64, 5e5, llama3(64, 5e5, 32.0, 1.0, 4.0, 8192), type="llama3", factor=32.0, original=8192)
divisors = converter_factors(64, 5e5, 32.0, 1.0, 4.0, 8192)
add("rope_freqs.weight", 64, 5e5, (plain(64, 5e5) / divisors.astype(np.float64), 1.0), divisors=divisors.astype(float).tolist())
print(json.dumps({"cases": cases}, indent=0))
