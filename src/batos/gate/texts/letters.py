"""Recognises the forms of a letter and the requests for a text: neither states anything that evidence could carry."""

from __future__ import annotations

import re

_SUBJECT = (
    r"(?:subject|re|betreff|betrifft|objet|asunto|oggetto|assunto|onderwerp|тема|件名|主题|主題|to|from|an|von|à|de"
    r"|para|da|aan"
    r"|cc)"
)
#: A line that is no statement: a subject line, a salutation, a closing, or a placeholder.
_FORM = re.compile(
    rf"^[^\S\n]*\**(?:{_SUBJECT}\**\s?[:：][^\n]*"
    r"|(?:dear|hello|hi|hey|sehr geehrte[rs]?|liebe[rs]?|guten tag|hallo|chère?s?|bonjour|madame|monsieur"
    r"|estimad[oa]s?"
    r"|querid[oa]s?|hola|gentile|egregi[oa]|car[oaie]|caro|prezad[oa]s?|geachte|beste|уважаем\w+|здравствуйте"
    r"|尊敬的|亲爱的)\b"
    r"(?:[^\n.!?\d]|(?<=\b[a-zA-Z]{2})\.|(?<=\b[a-zA-Z]{3})\.){0,60}[,!:，！：]?(?=\n|\Z)"
    r"|(?:(?:kind|best|warm|with kind|with best|many|warmest|kindest) regards|best wishes|best|yours(?: \w+)?"
    r"|sincerely(?: yours)?|cheers"
    r"|respectfully|mit (?:freundlichen|besten|lieben|herzlichen) grüßen|(?:freundliche|beste|liebe|viele"
    r"|herzliche) grüße|hochachtungsvoll"
    r"|cordialement|bien cordialement|sincères salutations|salutations[^\n]{0,30}|amicalement"
    r"|(?:un )?(?:cordial )?saludos?[^\n]{0,20}"
    r"|atentamente|cordiali saluti|distinti saluti|un saluto|atenciosamente|cumprimentos"
    r"|met vriendelijke groet(?:en)?|groeten"
    r"|с уважением|此致|敬礼|敬具)\**[,.!，。]?(?:\n[^\S\n]*[^\n]{1,60})?(?=\n|\Z)"
    r"|\[[^\]\n]{1,60}\][,.]?(?=\n|\Z))",
    re.IGNORECASE | re.MULTILINE,
)
#: A request for a text of the model's own, in which much stands that no document has.
_ASKS_FOR_TEXT = re.compile(
    r"\b(?:write|draft|compose|rewrite|rephrase|turn (?:this|the|it)\b.{0,60}\binto|make (?:this|it)|translate|plan"
    r"|suggest|poem|story"
    r"|e-?mail|letter|text message|post|speech"
    r"|schreib\w*|verfass\w*|formulier\w*|entw[iu]rf\w*|übersetz\w*|dichte|brief\b(?= an)|umschreiben"
    r"|schlage? \w+ vor"
    r"|écri[sv]\w*|rédige\w*|réécri\w*|reformul\w*|tradui\w*|courriel|propose"
    r"|escrib\w*|redact\w*|reescrib\w*|traduc\w*|traduz\w*|carta|correo"
    r"|scriv\w*|riscriv\w*|traduci|lettera|schrijf\w*|herschrijf\w*|vertaal\w*|escrev\w*|reescrev\w*|redij\w*"
    r"|напиши\w*|перепиши\w*|перевед\w*|составь\w*)\b"
    r"|写(?!作)|撰写|改写|翻译|起草|書いて|書き直|翻訳して|作成して",
    re.IGNORECASE,
)


def without_forms(text: str) -> str:
    """Remove subject lines, salutations, closings with the name below, and placeholders on lines of their own.

    >>> without_forms("Dear Ms Lund,\\n\\nthe lamp burns.\\n\\nKind regards,\\nAnna").strip()
    'the lamp burns.'
    """
    return _FORM.sub("", text)


def is_form(text: str) -> bool:
    """Test if a sentence is nothing but such a line, or several of them."""
    return _FORM.match(text) is not None and not without_forms(text).strip()


def asks_for_text(question: str) -> bool:
    """Test if a question asks for a text of the model's own: a letter, a poem, a plan, other words for something."""
    return _ASKS_FOR_TEXT.search(question) is not None
