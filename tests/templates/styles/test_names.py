from __future__ import annotations

import pytest

from tokenweir.templates.styles.names import named_style
from tokenweir.templates.styles.reasoning import style_of
from tokenweir.templates.styles.tools import tool_style_of

STYLES, FAMILIES = {"one-way": 1, "other": 2}, {"kin": "other"}


@pytest.mark.parametrize(("name", "found"), [("one-way", 1), ("One_Way", 1), ("OTHER", 2), ("kin", 2)])
def test_a_style_is_found_by_its_own_name_or_its_familys(name, found):
    assert named_style(name, "style", STYLES, FAMILIES) == found


def test_an_unknown_name_is_refused_with_those_that_exist():
    with pytest.raises(ValueError, match="^unknown tag style 'on'; known are one-way, other, kin$"):
        named_style("on", "tag style", STYLES, FAMILIES)


VLLM_TOOLS = """deepseek_v3 deepseek_v31 deepseek_v32 deepseek_v4 cohere_command3 cohere_command4 ernie45 glm45 glm47
granite-20b-fc granite granite4 hermes poolside_v1 hunyuan_a13b hy_v3 internlm jamba lfm2 kimi_k2 kimi_k3 llama3_json
llama4_json llama4_pythonic longcat mimo minimax_m2 minimax_m3 minicpm5 mistral olmo3 openai phi4_mini_json pythonic
beam spark3 minimax_m2_sanitized kimi_k25 qwen3_coder qwen3_xml qwen3_json musespark1x nemotron_json seed_oss step3 step3p5 step5 inkling xlam gigachat3
functiongemma gemma4 apertus solar_open2 dots deepseek_v41 ling3 hy_v4 k2_horizon plamo3 muse muse_glimmer"""
SGLANG_TOOLS = """apertus2509 cohere_command4 deepseekv3 deepseekv31 deepseekv32 deepseekv4 deepseekv41 dots glm glm45
glm47 gpt-oss k2_horizon kimi_k2 kimi_k3 lfm2 ling3 llama3 mimo minicpm5 mistral muse poolside_v1 pythonic qwen qwen25
qwen3_coder spark25 step3 step3p5 minimax-m2 minimax-m3 trinity interns1 hermes hunyuan gigachat3 gigachat35 gemma4
inkling nanbeige iquest_q1"""
VLLM_THINKING = """beam spark3 kimi_k25 deepseek_r1 deepseek_v3 deepseek_v4 poolside_v1 cohere_command3 cohere_command4 ernie45 gemma4
glm45 glm47 openai_gptoss granite granite_thinking_parser holo2 hunyuan_a13b hy_v3 kimi_k2 kimi_k3 ling3 mimo minicpmv
minimax_m2 minimax_m2_append_think minimax_m3 mistral nemotron_v3 olmo3 qwen3 seed_oss step3 step3p5 step5 inkling
solar_open2 deepseek_v41 hy_v4 k2_horizon plamo3 muse muse_glimmer musespark1x"""
SGLANG_THINKING = """apertus2509 deepseek-r1 deepseek-v3 deepseek-v4 glm45 hunyuan gpt-oss kimi kimi_k2 kimi_k3 mimo
poolside_v1 qwen3 qwen3-thinking minimax minimax-append-think minimax-m3 step3 step3p5 mistral nemotron_3 interns1
gemma4 inkling cohere_command4 telechat4 deepseek-v41 dots ling3 k2_horizon muse nanbeige granite_thinking_parser
iquest_q1 gigachat35"""


@pytest.mark.parametrize("name", sorted({*VLLM_TOOLS.split(), *SGLANG_TOOLS.split()}))
def test_the_names_of_tool_parsers_of_vllm_and_sglang_are_known(name):
    assert tool_style_of(name)


@pytest.mark.parametrize("name", sorted({*VLLM_THINKING.split(), *SGLANG_THINKING.split()}))
def test_the_names_of_reasoning_parsers_of_vllm_and_sglang_are_known(name):
    assert style_of(name)
