import type { NameRule, WireRules } from "../../src/providers/chat/WireRules.ts"
import { assert, it } from "../harness/It.ts"
import { wireRules } from "../providers/chat/Wires.ts"
import { page, section } from "./Markdown.ts"

const nameWords = ({ characters, first, longest, shortest }: NameRule): string => {
  const own = characters === "!-~" ? "printable ASCII" : `\`${characters}\``
  return `${shortest} to ${longest} of ${own}${first === undefined ? "" : `, the first of \`${first}\``}`
}

const words = {
  callArguments: { text: "a JSON text of an object", object: "an object" },
  root: {
    any: "any",
    object: "an object, without `anyOf` and its like",
    properties: "the same, with `properties`"
  },
  strict: { openai: "by OpenAI's rules", anthropic: "by Anthropic's rules", none: "never" },
  system: {
    anywhere: "as they stand",
    joined: "as they stand, one at the beginning",
    first: "one at the beginning",
    apart: "apart from the turns"
  },
  content: { parts: "as they are", text: "one text", marked: "one text unless a part is marked" },
  prefill: { any: "as it is", trimmed: "without white space at its end", none: "closed by the user's `Continue.`" }
} as const

const rows: ReadonlyArray<readonly [string, (rules: WireRules) => string]> = [
  ["Name of a tool", ({ toolName }) => nameWords(toolName)],
  ["Id of a call", ({ callId }) => nameWords(callId)],
  ["Arguments of earlier calls", ({ callArguments }) => words.callArguments[callArguments]],
  ["Root of a tool's schema", ({ toolRoot }) => words.root[toolRoot]],
  ["Root of an answer's schema", ({ answerRoot }) => words.root[answerRoot]],
  ["An array without `items`", ({ needsItems }) => (needsItems ? "has `items: {}`" : "as it is")],
  ["`strict`", ({ strict }) => words.strict[strict]],
  ["System messages", ({ system }) => words.system[system]],
  ["Text parts outside of the user's turns", ({ content }) => words.content[content]],
  ["A blank turn of the user", ({ blankUser }) => (blankUser ? "as it is" : "`.`, or left out beside another one")],
  [
    "A conversation that the assistant opens",
    ({ opensWithUser }) => (opensWithUser ? "opened by the user's `.`" : "as it is")
  ],
  ["One that the assistant ends", ({ prefill }) => words.prefill[prefill]]
]

const line = (cells: ReadonlyArray<string>): string => `| ${cells.join(" | ")} |`

const table = [
  line(["", ...wireRules.map(([wire]) => `\`${wire}\``)]).replace("|  |", "| |"),
  line(["", ...wireRules].map(() => "---")),
  ...rows.map(([rule, cellOf]) => line([rule, ...wireRules.map(([, rules]) => cellOf(rules))]))
].join("\n")

it("the docs have the rules of each wire as the code has them", () =>
  assert.include(section(page("docs/providers.md"), "Fitting a request to its wire"), table))
