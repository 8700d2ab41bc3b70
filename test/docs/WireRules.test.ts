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
    properties: "an object with `properties`, without `anyOf` and its like"
  },
  strict: { openai: "by OpenAI's rules", anthropic: "by Anthropic's rules", none: "never" },
  system: {
    anywhere: "unchanged",
    joined: "unchanged, those at the beginning joined",
    first: "joined at the beginning, later ones as user messages",
    apart: "in a field of their own"
  },
  content: { parts: "parts", text: "one text", marked: "one text up to each mark" },
  prefill: {
    any: "unchanged",
    trimmed: "loses its trailing white space",
    none: "a user turn `Continue.` follows it"
  }
} as const

const rows: ReadonlyArray<readonly [string, (rules: WireRules) => string]> = [
  ["Name of a tool", ({ toolName }) => nameWords(toolName)],
  ["Id of a call", ({ callId }) => nameWords(callId)],
  ["Arguments of earlier calls", ({ callArguments }) => words.callArguments[callArguments]],
  ["Root of a tool's schema", ({ toolRoot }) => words.root[toolRoot]],
  ["Root of an answer's schema", ({ answerRoot }) => words.root[answerRoot]],
  ["An array without `items`", ({ needsItems }) => (needsItems ? "gets `items: {}`" : "unchanged")],
  ["`strict`", ({ strict }) => words.strict[strict]],
  ["System messages", ({ system }) => words.system[system]],
  ["Text parts of a system message", ({ content }) => words.content[content]],
  ["A blank user turn", ({ blankUser }) => (blankUser ? "unchanged" : "`.`, or left out beside another one")],
  [
    "The assistant's turn is the first",
    ({ opensWithUser }) => (opensWithUser ? "a user turn `.` precedes it" : "unchanged")
  ],
  ["The assistant's turn is the last", ({ prefill }) => words.prefill[prefill]]
]

const line = (cells: ReadonlyArray<string>): string => `| ${cells.join(" | ")} |`

const table = [
  line(["", ...wireRules.map(([wire]) => `\`${wire}\``)]).replace("|  |", "| |"),
  line(["", ...wireRules].map(() => "---")),
  ...rows.map(([rule, cellOf]) => line([rule, ...wireRules.map(([, rules]) => cellOf(rules))]))
].join("\n")

it("the docs have the rules of each wire as the code has them", () =>
  assert.include(section(page("docs/providers.md"), "Fitting a request to its wire"), table))
