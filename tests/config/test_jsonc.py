import json
import sys
import tracemalloc
from collections.abc import Iterator

import pytest

from nexus_core.config.jsonc import JsonSyntaxError, is_blank, parse_json
from nexus_core.config.load import MAX_DEPTH, MAX_VALUES, LineIndex, TextPosition
from tests.effort import sampled
from tests.timing import assert_quick

MEBIBYTE = 1024 * 1024

ACCEPTED = {
    "array_arrays_with_spaces": "[[]   ]",
    "array_empty": "[]",
    "array_empty_string": '[""]',
    "array_false": "[false]",
    "array_heterogeneous": '[null, 1, "1", {}]',
    "array_null": "[null]",
    "array_with_1_and_newline": "[1\n]",
    "array_with_leading_space": " [1]",
    "array_with_several_null": "[1,null,null,null,2]",
    "array_with_trailing_space": "[2] ",
    "number_0e+1": "[0e+1]",
    "number_0e1": "[0e1]",
    "number_after_space": "[ 4]",
    "number_close_to_zero": "[-0.000000000000000000000000000000000000000000000000000000000000000000000000000001]",
    "number_int_with_exp": "[20e1]",
    "number_long_integer": "[123123123123123123123123123123]",
    "number_minus_zero": "[-0]",
    "number_minus_zero_float": "[-0.0]",
    "number_negative_int": "[-123]",
    "number_negative_one": "[-1]",
    "number_real_capital_e": "[1E22]",
    "number_real_capital_e_neg_exp": "[1E-2]",
    "number_real_capital_e_pos_exp": "[1E+2]",
    "number_real_exponent": "[123e45]",
    "number_real_fraction_exponent": "[123.456e78]",
    "number_real_neg_exp": "[1e-2]",
    "number_real_underflow": "[123e-10000000]",
    "number_simple_int": "[123]",
    "number_simple_real": "[123.456789]",
    "object_basic": '{"asd":"sdf"}',
    "object_empty": "{}",
    "object_empty_key": '{"":0}',
    "object_escaped_null_in_key": '{"foo\\u0000bar": 42}',
    "object_extreme_numbers": '{"min": -1.0e+28, "max": 1.0e+28}',
    "object_long_strings": '{"x":[{"id": "' + "x" * 40 + '"}], "id": "' + "x" * 40 + '"}',
    "object_same_key_elsewhere": '{"a": {"a": {"a": 1}}, "b": [{"a": 1}, {"a": 2}]}',
    "object_simple": '{"a":[]}',
    "object_string_unicode": '{"title":"\\u041f\\u043e\\u043b" }',
    "object_with_newlines": '{\n"a": "b"\n}',
    "string_1_2_3_bytes_utf_8_sequences": '["\\u0060\\u012a\\u12AB"]',
    "string_accepted_surrogate_pair": '["\\uD801\\udc37"]',
    "string_accepted_surrogate_pairs": '["\\ud83d\\ude39\\ud83d\\udc8d"]',
    "string_allowed_escapes": '["\\"\\\\\\/\\b\\f\\n\\r\\t"]',
    "string_backslash_and_u_escaped_zero": '["\\\\u0000"]',
    "string_backslash_doublequotes": '["\\""]',
    "string_comments": '["a/*b*/c/*d//e"]',
    "string_double_escape_a": '["\\\\a"]',
    "string_double_escape_n": '["\\\\n"]',
    "string_escaped_control_character": '["\\u0012"]',
    "string_escaped_noncharacter": '["\\uFFFF"]',
    "string_first_surrogates_1_and_2": '["\\uD800\\uDC00"]',
    "string_before_and_after_surrogates": '["\\uD7FF\\uE000"]',
    "string_in_array": '["asd"]',
    "string_in_array_with_leading_space": '[ "asd"]',
    "string_last_surrogates_1_and_2": '["\\uDBFF\\uDFFF"]',
    "string_nbsp_uescaped": '["new\\u00A0line"]',
    "string_noncharacter_u_ffff": '["\uffff"]',
    "string_null_escape": '["\\u0000"]',
    "string_one_byte_utf_8": '["\\u002c"]',
    "string_pi": '["π"]',
    "string_raw_astral": '["\U0001bfff"]',
    "string_raw_separators": '["\u2028\u2029"]',
    "string_simple_ascii": '["asd "]',
    "string_space": '" "',
    "string_three_byte_utf_8": '["\\u0821"]',
    "string_two_byte_utf_8": '["\\u0123"]',
    "string_u_escape": '["\\u0061\\u30af\\u30EA\\u30b9"]',
    "string_unescaped_char_delete": '["\x7f"]',
    "string_utf8": '["€𝄞"]',
    "string_with_del_character": '["a\x7fa"]',
    "structure_lonely_false": "false",
    "structure_lonely_int": "42",
    "structure_lonely_negative_real": "-0.1",
    "structure_lonely_null": "null",
    "structure_lonely_string": '"asd"',
    "structure_lonely_true": "true",
    "structure_string_empty": '""',
    "structure_trailing_newline": '["a"]\n',
    "structure_true_in_array": "[true]",
    "structure_whitespace_array": " \t\r\n[] ",
}

REFUSED = {
    "array_1_true_without_comma": "[1 true]",
    "array_colon_instead_of_comma": '["": 1]',
    "array_comma_after_close": '[""],',
    "array_comma_and_number": "[,1]",
    "array_double_comma": "[1,,2]",
    "array_double_extra_comma": '["x",,]',
    "array_extra_close": '["x"]]',
    "array_extra_comma": '["",]',
    "array_incomplete": '["x"',
    "array_incomplete_invalid_value": "[x",
    "array_inner_array_no_comma": "[3[4]]",
    "array_items_separated_by_semicolon": "[1:2]",
    "array_just_comma": "[,]",
    "array_just_minus": "[-]",
    "array_missing_value": '[   , ""]',
    "array_newlines_unclosed": '["a",\n4\n,1,',
    "array_number_and_comma": "[1,]",
    "array_spaces_vertical_tab_formfeed": '["\x0ba"\\f]',
    "array_star_inside": "[*]",
    "array_unclosed": '[""',
    "array_unclosed_trailing_comma": "[1,",
    "array_unclosed_with_object_inside": "[{}",
    "incomplete_false": "[fals]",
    "incomplete_null": "[nul]",
    "incomplete_true": "[tru]",
    "multidigit_number_then_00": "123\x00",
    "number_plus_plus": "[++1234]",
    "number_plus_1": "[+1]",
    "number_minus_01": "[-01]",
    "number_minus_1_dot_0_dot": "[-1.0.]",
    "number_minus_2_dot": "[-2.]",
    "number_dot_minus_1": "[.-1]",
    "number_dot_2e_minus_3": "[.2e-3]",
    "number_0_1_2": "[0.1.2]",
    "number_0_3e_plus": "[0.3e+]",
    "number_0_3e": "[0.3e]",
    "number_0_dot_e1": "[0.e1]",
    "number_0_capital_e_plus": "[0E+]",
    "number_0e": "[0e]",
    "number_1_0e_minus": "[1.0e-]",
    "number_1_000": "[1 000.0]",
    "number_1_underscore_000": "[1_000]",
    "number_1eE2": "[1eE2]",
    "number_2_dot_e_plus_3": "[2.e+3]",
    "number_9_dot_e_plus": "[9.e+]",
    "number_expression": "[1+2]",
    "number_full_width_digit_one": "[\uff11]",
    "number_hex_1_digit": "[0x1]",
    "number_hex_2_digits": "[0x42]",
    "number_infinity": "[Infinity]",
    "number_invalid_plus_minus": "[0e+-1]",
    "number_minus_infinity": "[-Infinity]",
    "number_minus_nan": "[-NaN]",
    "number_minus_sign_with_trailing_garbage": "[-foo]",
    "number_minus_space_1": "[- 1]",
    "number_nan": "[NaN]",
    "number_neg_int_starting_with_zero": "[-012]",
    "number_neg_real_without_int_part": "[-.123]",
    "number_neg_with_garbage_at_end": "[-1x]",
    "number_real_garbage_after_e": "[1ea]",
    "number_real_without_fractional_part": "[1.]",
    "number_starting_with_dot": "[.123]",
    "number_with_alpha": "[1.2a-3]",
    "number_with_leading_zero": "[012]",
    "object_bad_value": '["x", truth]',
    "object_bracket_key": '{[: "x"}\n',
    "object_comma_instead_of_colon": '{"x", null}',
    "object_double_colon": '{"x"::"b"}',
    "object_emoji": "{🇨🇭}",
    "object_garbage_at_end": '{"a":"a" 123}',
    "object_key_with_single_quotes": "{key: 'value'}",
    "object_lone_continuation_comma": '{"a":1,,"b":2}',
    "object_missing_colon": '{"a" "b"}',
    "object_missing_key": '{:"b"}',
    "object_missing_semicolon": '{"a" b}',
    "object_missing_value": '{"a":',
    "object_no_colon": '{"a"',
    "object_non_string_key": "{1:1}",
    "object_non_string_key_but_huge_number_instead": "{9999E9999:1}",
    "object_null_keys": "{null:null,null:null}",
    "object_only_comma": "{,}",
    "object_several_trailing_commas": '{"id":0,,,,,}',
    "object_single_quote": "{'a':0}",
    "object_trailing_comma": '{"id":0,}',
    "object_trailing_comment": '{"a":"b"}/**/',
    "object_trailing_comment_open": '{"a":"b"}/**//',
    "object_trailing_comment_slash_open": '{"a":"b"}//',
    "object_trailing_comment_incomplete": '{"a":"b"}/',
    "object_two_commas_in_a_row": '{"a":"b",,"c":"d"}',
    "object_unquoted_key": '{a: "b"}',
    "object_unterminated_value": '{"a":"a',
    "object_with_single_string": '{ "foo" : "bar", "a" }',
    "object_with_trailing_garbage": '{"a":"b"}#',
    "single_space": " ",
    "string_1_surrogate_then_escape": '["\\uD800\\"]',
    "string_1_surrogate_then_escape_u": '["\\uD800\\u"]',
    "string_1_surrogate_then_escape_u1": '["\\uD800\\u1"]',
    "string_1_surrogate_then_escape_u1x": '["\\uD800\\u1x"]',
    "string_accentuated_char_no_quotes": "[é]",
    "string_backslash_00": '["\\\x00"]',
    "string_escape_x": '["\\x00"]',
    "string_escaped_backslash_bad": '["\\\\\\"]',
    "string_escaped_ctrl_char_tab": '["\\\t"]',
    "string_escaped_emoji": '["\\🌀"]',
    "string_incomplete_escape": '["\\"]',
    "string_incomplete_escaped_character": '["\\u00A"]',
    "string_incomplete_surrogate": '["\\uD834\\uDd"]',
    "string_invalid_backslash_esc": '["\\a"]',
    "string_invalid_unicode_escape": '["\\uqqqq"]',
    "string_leading_uescaped_thinspace": '[\\u0020"asd"]',
    "string_no_quotes_with_bad_escape": "[\\n]",
    "string_octal_escape": '["\\012"]',
    "string_signed_unicode_escape": '["\\u+041"]',
    "string_single_doublequote": '"',
    "string_single_quote": "['single quote']",
    "string_single_string_no_double_quotes": "abc",
    "string_start_escape_unclosed": '["\\',
    "string_underscored_unicode_escape": '["\\u0_41"]',
    "string_unescaped_ctrl_char": '["a\x00a"]',
    "string_unescaped_newline": '["new\nline"]',
    "string_unescaped_tab": '["\t"]',
    "string_unicode_capital_u": '"\\UA66D"',
    "string_with_trailing_garbage": '""x',
    "structure_angle_bracket": "<.>",
    "structure_angle_bracket_null": "[<null>]",
    "structure_array_trailing_garbage": "[1]x",
    "structure_array_with_extra_array_close": "[1]]",
    "structure_array_with_unclosed_string": '["asd]',
    "structure_ascii_unicode_identifier": "aå",
    "structure_byte_order_mark": "\ufeff{}",
    "structure_capitalized_true": "[True]",
    "structure_close_unopened_array": "1]",
    "structure_comma_instead_of_closing_brace": '{"x": true,',
    "structure_double_array": "[][]",
    "structure_end_array": "]",
    "structure_hash_comment": "# a\n1",
    "structure_lone_open_bracket": "[",
    "structure_no_data": "",
    "structure_null_byte_outside_string": "[\x00]",
    "structure_number_with_trailing_garbage": "2@",
    "structure_object_followed_by_closing_object": "{}}",
    "structure_object_unclosed_no_value": '{"":',
    "structure_object_with_comment": '{"a":/*comment*/"b"}',
    "structure_object_with_line_comment": '{"a": // comment\n"b"}',
    "structure_object_with_trailing_garbage": '{"a": true} "x"',
    "structure_open_array_apostrophe": "['",
    "structure_open_array_open_object": "[{",
    "structure_open_object_close_array": "{]",
    "structure_open_object_open_string": '{"a',
    "structure_single_star": "*",
    "structure_unclosed_array_partial_null": "[ false, nul",
    "structure_unclosed_object": '{"asd":"asd"',
    "structure_whitespace_formfeed": "[\x0c]",
    "structure_whitespace_nbsp": "[\u00a0]",
    "structure_whitespace_u_2060_word_joiner": "[\u2060]",
}

REFUSED_BY_CHOICE = {
    "array_infinity": ("[Infinity]", "Expecting value"),
    "array_minus_infinity": ("[-Infinity]", "Expecting value"),
    "array_nan": ("[NaN]", "Expecting value"),
    "number_double_huge_neg_exp": ("[-1e999]", "Number out of range"),
    "number_huge_exp": ("[0.4e00669999999999999999999999999999999999]", "Number out of range"),
    "number_too_many_digits": (f"[{'9' * 4001}]", "Number out of range"),
    "object_duplicated_key": ('{"a":"b","a":"c"}', "Duplicate key 'a', already on line 1"),
    "object_duplicated_key_and_value": ('{"a":"b","a":"b"}', "Duplicate key 'a', already on line 1"),
    "object_duplicated_escaped_key": ('{"a":0,\n"\\u0061":0}', "Duplicate key 'a', already on line 1"),
    "string_1st_surrogate_but_2nd_missing": ('["\\uDADA"]', "Lone surrogate in \\uXXXX escape"),
    "string_1st_valid_surrogate_2nd_invalid": ('["\\uD888\\u1234"]', "Lone surrogate in \\uXXXX escape"),
    "string_first_surrogate": ('["\\uD800"]', "Lone surrogate in \\uXXXX escape"),
    "string_inverted_surrogates": ('["\\uDd1e\\uD834"]', "Lone surrogate in \\uXXXX escape"),
    "string_last_surrogate": ('["\\uDFFF"]', "Lone surrogate in \\uXXXX escape"),
    "string_lone_second_surrogate": ('["\\uDFAA"]', "Lone surrogate in \\uXXXX escape"),
    "structure_65_nested_arrays": ("[" * 65 + "]" * 65, "Nested deeper than 64 levels"),
}

WITH_COMMENTS = {
    "block_comment_after": ("1 /* x */", 1),
    "block_comment_before": ("/* x */ 1", 1),
    "block_comment_everywhere": ('/**/{/**/"a"/**/:/**/[/**/1/**/,/**/2/**/]/**/}/**/', {"a": [1, 2]}),
    "block_comment_of_stars": ("/***/1", 1),
    "block_comment_over_lines": ("/* a\n b */ 1", 1),
    "block_comment_with_line_comment_inside": ("/* // */ 1", 1),
    "line_comment_at_the_end_of_the_text": ("1 // x", 1),
    "line_comment_before": ("// x\n1", 1),
    "line_comment_ended_by_carriage_return": ("// x\r1", 1),
    "line_comment_ended_by_windows_line_end": ("// x\r\n1", 1),
    "line_comment_with_block_comment_inside": ("// /*\n1", 1),
    "no_comment_in_a_string": ('["//", "/*", "*/"]', ["//", "/*", "*/"]),
    "trailing_comma_in_array": ("[1,]", [1]),
    "trailing_comma_in_object": ('{"a":1,}', {"a": 1}),
    "trailing_comma_in_the_middle": ('[[1,],{"a":2,},3,]', [[1], {"a": 2}, 3]),
    "trailing_comma_then_comment": ("[1, // x\n]", [1]),
}

REFUSED_WITH_COMMENTS = {
    "comment_only": ("// x", "Expecting value", 4),
    "hash_comment": ("# x\n1", "Expecting value", 0),
    "lone_comma_in_array": ("[,]", "Expecting value", 1),
    "lone_comma_in_object": ("{,}", "Expecting property name enclosed in double quotes", 1),
    "nested_block_comment": ("/* /* */ */ 1", "Expecting value", 9),
    "single_slash": ("[1 / 2]", "Expecting ',' delimiter", 3),
    "single_slash_at_the_end": ("1 /", "Extra data", 2),
    "trailing_comma_after_the_document": ("[1],", "Extra data", 3),
    "two_trailing_commas": ("[1,,]", "Expecting value", 3),
    "unquoted_key": ("{a: 1}", "Expecting property name enclosed in double quotes", 1),
    "unterminated_block_comment": ("1 /* x", "Unterminated comment starting at", 2),
    "unterminated_block_comment_of_one_star": ("/*/ 1", "Unterminated comment starting at", 0),
}


def refusal(text: str, *, comments: bool = False) -> JsonSyntaxError:
    with pytest.raises(JsonSyntaxError) as caught:
        parse_json(text, comments=comments)
    return caught.value


@pytest.mark.acceptance("R10")
@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED)
def test_json_is_accepted_and_means_what_it_means_to_python(text: str) -> None:
    # By their representation, because 1, 1.0 and True are equal.
    assert repr(parse_json(text).value) == repr(json.loads(text))


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED)
def test_json_means_the_same_where_comments_are_allowed(text: str) -> None:
    assert repr(parse_json(text, comments=True).value) == repr(json.loads(text))


@pytest.mark.acceptance("F-08", "R10")
@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_what_is_not_json_is_refused_at_a_place_in_the_text(text: str) -> None:
    assert 0 <= refusal(text).offset <= len(text)


@pytest.mark.parametrize(("text", "message"), REFUSED_BY_CHOICE.values(), ids=REFUSED_BY_CHOICE)
def test_what_python_takes_but_is_no_good_is_refused(text: str, message: str) -> None:
    json.loads(text)

    assert refusal(text).message == message


@pytest.mark.parametrize(("text", "value"), WITH_COMMENTS.values(), ids=WITH_COMMENTS)
def test_comments_and_trailing_commas_are_accepted_where_allowed(text: str, value: object) -> None:
    assert parse_json(text, comments=True).value == value


@pytest.mark.parametrize("name", sorted(WITH_COMMENTS.keys() - {"no_comment_in_a_string"}))
def test_comments_and_trailing_commas_are_refused_elsewhere(name: str) -> None:
    with pytest.raises(JsonSyntaxError):
        parse_json(WITH_COMMENTS[name][0])


@pytest.mark.parametrize(("text", "message", "offset"), REFUSED_WITH_COMMENTS.values(), ids=REFUSED_WITH_COMMENTS)
def test_comments_do_not_allow_everything(text: str, message: str, offset: int) -> None:
    error = refusal(text, comments=True)

    assert (error.message, error.offset) == (message, offset)


@pytest.mark.parametrize(
    ("text", "message", "offset"),
    [
        ("", "Expecting value", 0),
        ("  ", "Expecting value", 2),
        ("{", "Expecting property name enclosed in double quotes", 1),
        ('{"a" 1}', "Expecting ':' delimiter", 5),
        ("[1 2]", "Expecting ',' delimiter", 3),
        ('{"a": 1 , }', "Illegal trailing comma before end of object", 8),
        ("[1 , ]", "Illegal trailing comma before end of array", 3),
        ('["a', "Unterminated string starting at", 1),
        ('["a\\', "Unterminated string starting at", 1),
        ('["a\\u0041', "Unterminated string starting at", 1),
        ('["a\n"]', "Invalid control character at", 3),
        ('["a\\x"]', "Invalid \\escape", 3),
        ('["a\\u00g0"]', "Invalid \\uXXXX escape", 4),
        ("1 2", "Extra data", 2),
    ],
)
def test_the_usual_mistakes_have_the_usual_message_and_place(text: str, message: str, offset: int) -> None:
    error = refusal(text)

    assert (error.message, error.offset) == (message, offset)


def test_a_key_that_is_there_twice_is_shown_at_its_second_place() -> None:
    error = refusal('{\n  "a": 1,\n  "b": 2,\n  "a": 3\n}')

    assert (error.message, error.offset) == ("Duplicate key 'a', already on line 2", 24)


def test_a_long_key_is_not_repeated_in_full() -> None:
    key = "k" * 1000

    assert refusal(f'{{"{key}": 1, "{key}": 2}}').message == f"Duplicate key '{'k' * 39}…', already on line 1"


def test_an_integer_of_many_digits_is_exact() -> None:
    assert parse_json("9" * 4000).value == 10**4000 - 1


@pytest.fixture
def short_integers() -> Iterator[None]:
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    yield
    sys.set_int_max_str_digits(limit)


@pytest.mark.usefixtures("short_integers")
def test_an_integer_beyond_what_this_python_converts_is_refused() -> None:
    assert refusal("9" * 641).message == "Number out of range"


@pytest.mark.parametrize(
    ("text", "pointer", "position"),
    [
        ("1", "", TextPosition(1, 1)),
        ("\n\n  1", "", TextPosition(3, 3)),
        ('{"a": 1}', "/a", TextPosition(1, 2)),
        ('{\n  "a": {\n    "b": 1}}', "/a/b", TextPosition(3, 5)),
        ('{\r\n  "a": {\r\n    "b": 1}}', "/a/b", TextPosition(3, 5)),
        ('{\r  "a": {\r    "b": 1}}', "/a/b", TextPosition(3, 5)),
        ('{\n\r\n\r"a": 1}', "/a", TextPosition(4, 1)),
        ('{\t\t"a": 1}', "/a", TextPosition(1, 4)),
        ('{"𝄞🎼": 0, "a": 1}', "/a", TextPosition(1, 11)),
        ('{"\\ud834\\udd1e": 0, "a": 1}', "/a", TextPosition(1, 21)),
        ('{"e\u0301": 0, "a": 1}', "/a", TextPosition(1, 11)),
        ('["\u2028", 1]', "/1", TextPosition(1, 7)),
        ('{"a": [10,\n20]}', "/a/0", TextPosition(1, 8)),
        ('{"a": [10,\n20]}', "/a/1", TextPosition(2, 1)),
        ('{"a/b": {"m~n": 1}}', "/a~1b/m~0n", TextPosition(1, 10)),
        ('{"": {"": 1}}', "//", TextPosition(1, 7)),
    ],
)
def test_a_value_is_found_by_line_and_column(text: str, pointer: str, position: TextPosition) -> None:
    assert parse_json(text).position(pointer) == position


@pytest.mark.parametrize("pointer", ["/a/c", "/a/c/d", "/a/0"])
def test_what_is_missing_is_placed_where_it_should_be(pointer: str) -> None:
    document = parse_json('{\n  "a": {\n    "b": 1}}')

    assert document.span(pointer) is None
    assert document.position(pointer) == TextPosition(2, 3)


def test_what_would_be_below_a_scalar_is_placed_at_the_scalar() -> None:
    assert parse_json('{"a": 1, "b": 2}').position("/b/c/d") == TextPosition(1, 10)


@pytest.mark.parametrize("token", ["2", "-", "-1", "+1", "01", "1.0", "", "\u0661", "9" * 5000])
def test_an_array_has_no_member_by_another_name(token: str) -> None:
    assert parse_json("[1, 2]").span(f"/{token}") is None


def test_a_span_covers_the_value_and_knows_its_key() -> None:
    text = '{"a" : [1, "x\\n" ] }'

    span = parse_json(text).span("/a")

    assert span is not None
    assert text[span.key : span.start] == '"a" : '
    assert text[span.start : span.end] == '[1, "x\\n" ]'


@pytest.mark.acceptance("B-10")
def test_blank_lines_at_the_beginning_count() -> None:
    text = '\n\n\n{\n  "a": 1,\n  b: 2\n}'

    assert LineIndex(text).position(refusal(text).offset) == TextPosition(6, 3)


@pytest.mark.parametrize("text", ["", " ", "\t\r\n"])
def test_a_text_without_a_value_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", ["0", " {}", "\u00a0", "// a"])
def test_a_text_with_anything_in_it_is_not_blank(text: str) -> None:
    assert not is_blank(text)


def test_a_text_of_comments_is_blank_where_they_are_allowed() -> None:
    assert is_blank("// a\n/* b */", comments=True)


def test_the_deepest_document_is_read_and_one_level_more_is_refused() -> None:
    assert parse_json("[" * MAX_DEPTH + "]" * MAX_DEPTH).value
    assert refusal('{"a":' * MAX_DEPTH + "[").offset == 5 * MAX_DEPTH


@pytest.mark.slow
def test_the_largest_number_of_values_is_read_and_one_more_is_refused() -> None:
    items = "0," * (MAX_VALUES - 2) + "0"

    assert len(json.dumps(parse_json(f"[{items}]").value)) == 3 * (MAX_VALUES - 1)
    assert refusal(f"[{items},0]").message == f"More than {MAX_VALUES} values"


BOMBS = {
    "arrays": "[" * MEBIBYTE,
    "objects": '{"a":' * (MEBIBYTE // 5),
    "closed_arrays": "[" * (MEBIBYTE // 2) + "]" * (MEBIBYTE // 2),
    "one_string": '"' + "a" * MEBIBYTE,
    "one_string_of_escapes": '"' + "\\n" * (MEBIBYTE // 2),
    "one_string_of_surrogates": '"' + "\\ud83d\\ude00" * (MEBIBYTE // 12),
    "one_integer": "1" * MEBIBYTE + "x",
    "one_fraction": "0." + "1" * MEBIBYTE + "x",
    "one_exponent": "1e" + "1" * MEBIBYTE,
    "many_items": "[" + "0," * (MEBIBYTE // 2),
    "many_empty_arrays": "[" + "[]," * (MEBIBYTE // 3),
    "many_keys": "{" + ",".join(f'"{number}":0' for number in range(MEBIBYTE // 10)),
    "a_long_key_above_many_values": '{"' + "k" * (MEBIBYTE // 2) + '":[' + "0," * (MEBIBYTE // 4),
    "many_line_comments": "//\n" * (MEBIBYTE // 3),
    "many_block_comments": "/**/" * (MEBIBYTE // 4),
    "many_openings_of_comments": "/*" * (MEBIBYTE // 2),
    "blank_lines": "\n" * MEBIBYTE,
    "blank_windows_lines": "\r\n" * (MEBIBYTE // 2),
    "a_key_twice": '{"' + "k" * (MEBIBYTE // 2) + '":0,"' + "k" * (MEBIBYTE // 2) + '":0}',
}


@pytest.mark.acceptance("T16")
@pytest.mark.parametrize("text", sampled(BOMBS.values(), one_in=3), ids=BOMBS)
def test_a_bomb_is_refused_quickly_with_its_place(text: str) -> None:
    positions: list[TextPosition] = []

    # 35 at most were measured. A search through the text for each of its characters takes thousands.
    assert_quick(lambda: positions.append(LineIndex(text).position(refusal(text, comments=True).offset)), times=150)

    assert positions >= [TextPosition(1, 1)]


@pytest.mark.slow
@pytest.mark.acceptance("T16")
@pytest.mark.parametrize(
    "name", sampled(["blank_lines", "many_keys", "many_items", "a_long_key_above_many_values"], one_in=4)
)
def test_the_hungriest_bombs_take_less_than_64_mebibytes(name: str) -> None:
    tracemalloc.start()

    position = LineIndex(BOMBS[name]).position(refusal(BOMBS[name], comments=True).offset)

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert position >= TextPosition(1, 1)
    assert peak < 64 * MEBIBYTE
