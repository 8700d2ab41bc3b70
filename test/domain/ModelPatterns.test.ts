import { compileModelPatterns, findUnmatchedPatterns, modelPattern } from "../../src/domain/ModelPatterns.ts"
import { assert, describe, it } from "../harness/It.ts"

describe("a list of model patterns", () => {
  it.each<[pattern: string, matched: ReadonlyArray<string>, others: ReadonlyArray<string>]>([
    ["gpt-5.2", ["gpt-5.2"], ["gpt-5", "gpt-5.20", "gpt-5x2", "GPT-5.2", "xgpt-5.2", ""]],
    ["*", ["a", "vendor/name:free", ""], []],
    ["claude-*", ["claude-", "claude-opus-5"], ["claude", "my-claude-1", "Claude-opus-5"]],
    ["*-mini", ["gpt-mini", "-mini"], ["gpt-mini-2", "mini"]],
    ["*opus*", ["opus", "claude-opus-5"], ["opu", "op-us"]],
    ["a*a", ["aa", "aba", "a-a-a"], ["a", "ab", "ba"]],
    ["a*b*c", ["abc", "axbxc", "abcbc", "a-bb-cc"], ["acb", "ab", "ac", "abca"]],
    ["ab*bc", ["abbc", "ab-bc"], ["abc"]],
    ["a*bc*cd", ["abccd", "abc-cd"], ["abcd"]],
    ["a**b", ["ab", "a-b"], ["a", "b"]],
    ["vendor/*:free", ["vendor/a:free", "vendor/a/b:free"], ["vendor/a", "other/a:free"]]
  ])("with %s has what the pattern matches, and nothing else", (pattern, matched, others) => {
    const isMatched = compileModelPatterns(["no-such-model", pattern])
    for (const id of matched) assert.isTrue(isMatched(id), id)
    for (const id of others) assert.isFalse(isMatched(id), id)
  })

  it("is compared quickly however it was made to be slow", () => {
    const isMatched = compileModelPatterns(Array.from({ length: 100 }, () => "*a".repeat(100)))
    assert.isFalse(isMatched(`${"a".repeat(5_000)}b`))
    assert.isTrue(isMatched("a".repeat(5_000)))
  })

  it("finds the patterns that match no id", () => {
    assert.deepStrictEqual(findUnmatchedPatterns(["a-*", "b", "*2", "A-1"], ["a-1", "b-2"]), ["b", "A-1"])
    assert.deepStrictEqual(findUnmatchedPatterns([], ["a-1"]), [])
  })

  it("is written with the characters of ids", () => {
    for (const pattern of ["*", "a", "vendor/na_me.v1:free-*", "*-5", "9"]) assert.match(pattern, modelPattern)
    for (const pattern of ["", " ", "a b", "a,b", "a?", "[a]", "a\n", "é", "-a", "/a", "a\\*"]) {
      assert.notMatch(pattern, modelPattern, pattern)
    }
  })
})
