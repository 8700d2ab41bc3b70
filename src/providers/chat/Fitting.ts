import type { ChatRequest, ToolChoice } from "../../domain/Chat.ts"
import { fitCalls } from "./ToolCalls.ts"
import { fitAnswerFormat, fitTools } from "./ToolFitting.ts"
import { type ClientNames, clientNames, fitNamesIn } from "./ToolNames.ts"
import { fitEnds, fitTurns } from "./Turns.ts"
import type { WireRules } from "./WireRules.ts"

export interface Fitted {
  readonly request: ChatRequest
  /** For the answer; undefined: all names were sent as they are. */
  readonly names: ClientNames | undefined
}

const fitChoice = (choice: ToolChoice | undefined, names: ReadonlyMap<string, string> | undefined) => {
  const name = typeof choice === "object" ? names?.get(choice.function.name) : undefined
  return name === undefined ? choice : ({ type: "function", function: { name } } as const)
}

/** Fits a request to what a wire accepts. Returns the same object if nothing has to change. */
export const fitRequest = (request: ChatRequest, rules: WireRules): Fitted => {
  const sent = fitNamesIn(request, rules)
  const turns = fitTurns(request.messages, rules, request.unpricedMarks !== "all")
  const messages = fitEnds(fitCalls(turns, rules, sent), rules)
  const tools = fitTools(request.tools, rules, sent)
  const toolChoice = fitChoice(request.toolChoice, sent)
  const responseFormat = request.responseFormat && fitAnswerFormat(request.responseFormat, rules)
  const isSame =
    messages === request.messages &&
    tools === request.tools &&
    toolChoice === request.toolChoice &&
    responseFormat === request.responseFormat
  return {
    request: isSame ? request : { ...request, messages, tools, toolChoice, responseFormat },
    names: clientNames(sent)
  }
}
