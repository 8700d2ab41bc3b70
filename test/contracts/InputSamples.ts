import type { Form, Inputs } from "../../src/services/resources/ResourceInput.ts"

interface Samples {
  /** As a body has it, and an answer. */
  readonly value: unknown
  /** The same for a command. */
  readonly word: string
  readonly wrongValues: ReadonlyArray<unknown>
  readonly wrongWords: ReadonlyArray<string>
}

const long = "x".repeat(10_000)

/** Values of each kind of input, right ones and wrong ones. */
export const samplesOf = ({ kind, options: [option = ""] = [] }: Form): Samples => {
  switch (kind) {
    case "text":
      return { value: "abc", word: "abc", wrongValues: [5, null, long], wrongWords: [long] }
    case "integer":
      return { value: 7, word: "7", wrongValues: [0.5, "7", -1, 1e12], wrongWords: ["0.5", "x", "1000000000000"] }
    case "percent":
      return {
        value: 12.5,
        word: "12.5",
        wrongValues: [-101, 101, 0.125, "10", null],
        wrongWords: ["x", "101", "0.125", "10%"]
      }
    case "usd":
      return { value: 2.5, word: "2.5", wrongValues: [-1, "x", 1e-10, 1e12], wrongWords: ["x", "0.0000000001"] }
    case "time":
      return { value: 4e9, word: "4000000000", wrongValues: ["soon", 1.5, -1], wrongWords: ["soon"] }
    case "flag":
      return { value: true, word: "on", wrongValues: ["true", 1, null], wrongWords: ["yes"] }
    case "choice":
      return { value: option, word: option, wrongValues: ["none of them", 1], wrongWords: ["none of them"] }
    case "patterns":
      return {
        value: ["*", "*l*"],
        word: "*,*l*",
        wrongValues: ["*", [], [""], ["a b"], ["é"], [5], [long], Array.from({ length: 101 }, (_, at) => `m-${at}`)],
        wrongWords: ["", ",", "a b", "a,,b", long]
      }
    case "duration":
      return {
        value: 90,
        word: "90s",
        wrongValues: [-1, 0, 0.5, "90s", 1e12],
        wrongWords: ["0s", "1.5h", "90", "999999d", "2099-01-01"]
      }
    case "choices":
      return { value: [option], word: option, wrongValues: [["none of them"], [], option], wrongWords: ["x,y"] }
  }
}

/** The fields that are written together with one, itself among them. */
export const companionsOf = (inputs: Inputs, field: string): ReadonlyArray<string> =>
  Object.keys(inputs).filter(
    (other) => other === field || inputs[other]?.needs === field || inputs[field]?.needs === other
  )

/** A right value for a field and its companions. */
export const bodyFor = (inputs: Inputs, field: string): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    companionsOf(inputs, field).flatMap((name) => {
      const input = inputs[name]
      return input === undefined ? [] : [[name, samplesOf(input.form).value]]
    })
  )
