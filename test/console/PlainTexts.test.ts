import { consoleInputs } from "../../src/services/admin/Organizations.ts"
import { findingsIn } from "../docs/PlainEnglish.ts"
import { assert, describe, it } from "../harness/It.ts"
import { modules, textsIn } from "./ConsoleTexts.ts"

interface Exception {
  readonly file: string
  /** How the text begins. */
  readonly start: string
  readonly reason: string
}

/** Texts that may break a rule. An entry that no text needs any more must be removed. */
const exceptions: ReadonlyArray<Exception> = []

/** Phrases that the console once used, and the words of other dashboards for them. */
const phrases: ReadonlyArray<readonly [pattern: RegExp, advice: string]> = [
  [/\b(?:give|gives|given|gave) (?:\w+ )?back\b/i, "refund or release"],
  [/\btaken back\b/i, "refunded or reversed"],
  [/\blets? (?:\w+ )?in\b/i, "invite or unblock"],
  [/\blooks? (?:at|again)\b/i, "poll"],
  [/\b(?:leaves?|left) out\b/i, "excludes"],
  [/\bneeds? you\b/i, "needs attention"],
  [/\bwhat (?:it|is|was|runs?|they)\b/i, "name it by a noun"],
  [/\b(?:is|are) gone\b/i, "deleted or ended"],
  [/\bpartly\b/i, "partially"],
  [/ % of what\b/, "name it by a noun"]
]

interface Finding {
  readonly file: string
  readonly text: string
  readonly problem: string
}

const findProblems = (file: string, text: string): ReadonlyArray<Finding> => [
  ...findingsIn({ file, text }).map(({ problem, sentence }) => ({ file, text: sentence, problem })),
  ...phrases.flatMap(([pattern, advice]) => (pattern.test(text) ? [{ file, text, problem: advice }] : []))
]

const inputTexts = Object.values(consoleInputs)
  .flat()
  .flatMap(({ column, label, none }) => [label, column, none].filter((text) => text !== undefined))

const findings = [...modules, { file: "src/services/admin/Organizations.ts", texts: inputTexts }].flatMap(
  ({ file, texts }) => texts.flatMap((text) => findProblems(file, text))
)

const isException = ({ file, text }: Finding, exception: Exception): boolean =>
  exception.file === file && text.startsWith(exception.start)

describe("the texts of the console", () => {
  it("are plain English", () =>
    assert.deepStrictEqual(
      findings.filter((finding) => !exceptions.some((exception) => isException(finding, exception))),
      []
    ))

  it("have no unused exception", () =>
    assert.deepStrictEqual(
      exceptions.filter((exception) => !findings.some((finding) => isException(finding, exception))),
      []
    ))

  it("are found in every view", () => {
    const texts = new Set(modules.flatMap((module) => module.texts))
    const examples = [
      "Needs attention",
      "Provider health",
      "partially refunded",
      "Copy it now. You cannot view it again."
    ]
    assert.includeMembers([...texts], examples)
    const views = modules.filter(({ file }) => file.startsWith("src/console/views/") && file.endsWith(".tsx"))
    assert.deepStrictEqual(
      views.filter(({ texts }) => texts.length === 0),
      []
    )
  })

  it.each([
    ["<p>Of attempts the log keeps <b>all</b>.</p>", ["Of attempts the log keeps all.", "all"]],
    ["<p>\n  Charged {formatUsd(amount)} of{' '}\n  <Usd amount={all} />.\n</p>", ["Charged x of x."]],
    ['<Field label="Amount" name="amount_usd" class="wide field" />', ["Amount"]],
    ['<Fact name="Hold" title={isOpen ? "open" : `since ${day}`} />', ["Hold", "open", "since x"]],
    ['toast("Endpoint removed.")', ["Endpoint removed."]],
    ['const tones = { half_open: "half open" }', ["half open"]],
    ['import { a } from "some module"; const path = "/a b"; type A = "one two"', []]
  ])("are extracted from %s", (source, texts) => assert.deepStrictEqual(textsIn("Example.tsx", source), texts))

  it.each([
    ["Of attempts the log keeps the duration.", 1],
    ["A hold was given back.", 2],
    ["leaves out 3 requests", 1],
    ["excludes 3 requests with unknown cost", 0]
  ])("are judged, in example %$", (text, count) => assert.lengthOf(findProblems("", text), count))
})
