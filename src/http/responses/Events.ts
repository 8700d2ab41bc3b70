import type { ChatRequest } from "../../domain/Chat.ts"
import { stringify } from "../../domain/JsonSource.ts"
import type { AnswerName } from "../chat/ChatDialect.ts"
import { frame } from "../chat/Sse.ts"
import type { failureOf } from "./Failure.ts"
import { responseHead } from "./Response.ts"

/** Writes the events of one stream, numbered in order. */
export class Events {
  private sequence = 0
  private readonly head: string

  constructor(name: AnswerName, request: ChatRequest) {
    this.head = stringify(responseHead(name, request)).slice(0, -1)
  }

  /** `members`: the event's JSON without its braces; empty where it has none of its own. */
  event(type: string, members: string): string {
    const head = `{"type":${JSON.stringify(type)},"sequence_number":${this.sequence++}`
    return frame(type, members === "" ? `${head}}` : `${head},${members}}`)
  }

  /** An event with the whole response; `more` are members, `output` is items, both as JSON. */
  response(type: string, status: string, more: string, output = "", usage = "null"): string {
    const response = `${this.head},"status":"${status}",${more},"output":[${output}],"usage":${usage}}`
    return this.event(`response.${type}`, `"response":${response}`)
  }

  start(): string {
    const nothing = '"error":null,"incomplete_details":null'
    return this.response("created", "in_progress", nothing) + this.response("in_progress", "in_progress", nothing)
  }

  failed(failure: ReturnType<typeof failureOf>, output?: string): string {
    return this.response("failed", "failed", `"error":${JSON.stringify(failure)},"incomplete_details":null`, output)
  }
}
