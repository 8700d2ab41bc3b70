import { assert, describe, it } from "../harness/It.ts"
import { pages } from "./Markdown.ts"
import { findingsIn } from "./PlainEnglish.ts"
import { programPages } from "./Texts.ts"

const checkedPages = [...pages, ...programPages]

interface Exception {
  /** A file of the documentation, or the name of a page in `Texts.ts`. */
  readonly file: string
  /** How the sentence begins. */
  readonly start: string
  readonly reason: string
}

/** Sentences that may break a rule. A sentence that breaks no rule must not be on the list. */
const exceptions: ReadonlyArray<Exception> = []

describe("plain English", () => {
  for (const page of checkedPages) {
    it(`is the language of ${page.file}`, () => {
      assert.isNotEmpty(page.text)
      const findings = findingsIn(page).filter(
        ({ sentence }) => !exceptions.some(({ file, start }) => file === page.file && sentence.startsWith(start))
      )
      assert.deepStrictEqual(findings, [])
    })
  }

  it("covers errors, the admin API document and metrics", () => {
    const texts = programPages.map(({ text }) => text).join("\n")
    const samples = ["Missing API key.", "The id or name.", "Resident memory", "Unfinished videos in the database"]
    for (const sample of samples) assert.include(texts, sample)
  })

  it("has no exception that is not needed", () => {
    const isNeeded = ({ file, start }: Exception) =>
      checkedPages.some((page) => page.file === file && findingsIn(page).some((one) => one.sentence.startsWith(start)))
    assert.deepStrictEqual(
      exceptions.filter((exception) => !isNeeded(exception)),
      []
    )
  })

  it("needs a reason for every exception", () => {
    for (const { reason, start } of exceptions) assert.match(reason, /\w+ \w+/, start)
  })

  it.each([
    ["Of attempts the log keeps the duration.", 1],
    ["The log keeps this. Of attempts it keeps the duration.", 1],
    ["| Field | Of keys |\n| --- | --- |\n| `a` | Of a key. |", 2],
    ["An event tells of it.", 1],
    ["The operator is told.", 1],
    ["Poll until the video\nis over.", 1],
    ["Repeat the request once it is over: then it succeeds.", 1],
    ["The cap applies as ever.", 1],
    ["They are refused all the same.", 1],
    ["A model that is no more.", 1],
    ["The hold is given back.", 1],
    ["It starts by itself.", 1],
    ["Null where there is none.", 1],
    ["The newest if left out.", 1],
    ["The cap; null without one.", 1],
    [`- ${"word ".repeat(31)}\n- short`, 1],
    [`${"word ".repeat(30)}\n\n| ${"word ".repeat(40)} |`, 0],
    ["The body is over 1 MiB, and no more than 2.\n\n```sh\nOf code, as ever\n```\n\n`Of code`", 0],
    [`## Heading\n${"word ".repeat(25)}\n${"word ".repeat(5)}. \`code\` ${"word ".repeat(29)}.`, 0]
  ])("is judged sentence by sentence, in example %$", (text, count) =>
    assert.lengthOf(findingsIn({ file: "", text }), count, JSON.stringify(findingsIn({ file: "", text })))
  )
})
