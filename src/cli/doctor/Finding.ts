import { pluralize } from "../../domain/Plural.ts"
import type * as Output from "../Output.ts"

export type State = "ok" | "warning" | "problem"

export type Finding = {
  readonly check: string
  readonly state: State
  readonly detail: string
}

/** `detail` of what is not ok says what to do. */
export const finding = (check: string, state: State, detail: string): Finding => ({ check, state, detail })

export const ok = (check: string, detail: string) => finding(check, "ok", detail)
export const warning = (check: string, detail: string) => finding(check, "warning", detail)
export const problem = (check: string, detail: string) => finding(check, "problem", detail)

/** The first of many. */
export const list = (words: ReadonlyArray<string>) =>
  words.length > 5 ? `${words.slice(0, 5).join(", ")}, …` : words.join(", ")

const count = (findings: ReadonlyArray<Finding>, state: State) => findings.filter((one) => one.state === state).length

export const report = (findings: ReadonlyArray<Finding>): Output.Output => {
  const [problems, warnings] = [count(findings, "problem"), count(findings, "warning")]
  const width = Math.max(...findings.map(({ check }) => check.length))
  const lines = findings.map(({ check, detail, state }) => `${state.padEnd(8)} ${check.padEnd(width)}  ${detail}`)
  return {
    document: { healthy: problems === 0, problems, warnings, data: findings },
    text: lines.join("\n"),
    failure: problems === 0 ? undefined : `The doctor found ${pluralize(problems, "problem")}.`
  }
}
