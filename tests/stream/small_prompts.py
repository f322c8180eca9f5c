"""Prompts for the small model, in many scripts: its answers have characters that are split over tokens."""

from tokenweir.encode.tokenizer import Tokenizer
from tokenweir.templates.chat_template import ChatTemplate

TEXTS = [
    "What is the capital of France?",
    "Écris une phrase très courte à propos de l'été.",
    "Grüße aus Köln über die Straße",
    "Привет, как дела? Привет, как дела? Привет,",
    "Καλημέρα κόσμε. Καλημέρα κόσμε. Καλημέρα",
    "שלום עולם שלום עולם שלום",
    "مرحبا بالعالم مرحبا بالعالم مرحبا",
    "नमस्ते दुनिया नमस्ते दुनिया नमस्ते",
    "สวัสดีชาวโลก สวัสดีชาวโลก สวัสดี",
    "你好，世界。你好，世界。你好，",
    "こんにちは世界。こんにちは世界。こんにちは",
    "안녕하세요 세계 안녕하세요 세계 안녕하세요",
    "Xin chào thế giới. Xin chào thế giới. Xin chào",
    "Բարեւ աշխարհ Բարեւ աշխարհ Բարեւ",
    "გამარჯობა მსოფლიო გამარჯობა",
    "ሰላም ልዑል ሰላም ልዑል ሰላም",
    "வணக்கம் உலகம் வணக்கம் உலகம் வணக்கம்",
    "🎉🎊🎉🎊🎉🎊🎉🎊",
    "👩‍🚀👩‍🚀👩‍🚀👩‍🚀",
    "🇫🇷 🇩🇪 🇫🇷 🇩🇪 🇫🇷",
    "😀 😃 😀 😃 😀 😃",
    "∀x∃y: x ≤ y ∀x∃y: x ≤ y ∀x",
    "def f(x):\n    return x + 1\n\ndef g(x):\n",
    "| a | b |\n|---|---|\n| 1 | 2 |\n",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝔘𝔫𝔦",
]


def prompts(tok: Tokenizer) -> list[list[int]]:
    """Return fifty prompts as ids: each text as a question in a chat, and as a text to continue."""
    template = ChatTemplate.from_tokenizer(tok)
    asked = [template.render([{"role": "user", "content": text}]).encode(tok) for text in TEXTS]
    return asked + [tok.encode(text) for text in TEXTS]
