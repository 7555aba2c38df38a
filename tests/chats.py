"""A small tokenizer, and chat templates of the kinds that are met."""

from __future__ import annotations

import copy
from functools import cache

from transformers import AddedToken

from gumiho_decoder.tiny.making.stream import train_tokenizer

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# Contents are trimmed, the answer ends with the end-of-text token, there is no header for it.
INST = (
    "{% if messages[0].role == 'system' %}{% set s = '<<SYS>>\n' + messages[0].content + '\n<</SYS>>\n\n' %}"
    "{% set messages = messages[1:] %}{% else %}{% set s = '' %}{% endif %}"
    "{% for message in messages %}{% if (message.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}"
    "{% if message.role == 'user' %}<s>[INST] {{ (s if loop.first else '') + message.content | trim }} [/INST]"
    "{% else %} {{ message.content | trim }} <|endoftext|>{% endif %}{% endfor %}"
)
# No end token: the blank line ends a turn.
ALPACA = (
    "{% for message in messages %}### {{ message.role }}:\n{{ message.content }}\n\n{% endfor %}"
    "{% if add_generation_prompt %}### assistant:\n{% endif %}"
)
# The last answer has its thoughts, the earlier ones do not.
THINKING = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% if message.role == 'assistant' and loop.last %}<think>\n\n</think>\n\n{% endif %}"
    "{{ message.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# The prompt begins the answer's thoughts; an answer that is there has none.
THINKING_PROMPT = CHATML.replace(
    "{% if add_generation_prompt %}<|im_start|>assistant\n",
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n",
)
# What comes first depends on what comes last.
COUNTING = "{{ messages | length }} turns\n" + CHATML
NO_SYSTEM = "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}" + CHATML
TAGGED = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{% if message.role == 'assistant' %}"
    "{% generation %}{{ message.content }}<|im_end|>{% endgeneration %}{% else %}{{ message.content }}<|im_end|>"
    "{% endif %}{{ '\n' }}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
DATED = "{{ strftime_now('%Y-%m-%d %f') }}\n" + CHATML


@cache
def trained():
    text = "the user asks: what is the sum? assistant: the answer is that it is so.\n\n" * 20
    tokenizer = train_tokenizer([text, "<think>\n"], 320)
    added = [AddedToken(name, special=True, normalized=False) for name in ("<|im_start|>", "<|im_end|>")]
    tokenizer.add_tokens([*added, AddedToken("<s>", special=True, normalized=False)], special_tokens=True)
    return tokenizer


def tokenizer_with(template: str | None):
    """The tokenizer with this chat template."""
    tokenizer = copy.copy(trained())
    tokenizer.chat_template = template
    return tokenizer


class Slow:
    """The same tokenizer, as one that cannot say where in the text its tokens stand."""

    is_fast = False

    def __init__(self, tokenizer) -> None:
        self._tokenizer = tokenizer

    def __getattr__(self, name: str):
        return getattr(self._tokenizer, name)

    def __call__(self, text: str, **settings):
        assert "return_offsets_mapping" not in settings
        return self._tokenizer(text, **settings)
