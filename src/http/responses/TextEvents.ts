/** An item whose text still grows. */
export interface OpenText {
  readonly kind: "msg" | "rs"
  readonly index: number
  readonly id: string
  readonly at: string
  /** Escaped. */
  text: string
  /** Of a message. */
  readonly annotations: Array<object>
}

/** What the events of a message's text and of reasoning have in common, by the kind of their item. */
export const textEvents = {
  msg: {
    partAdded: "response.content_part.added",
    delta: "response.output_text.delta",
    done: "response.output_text.done",
    partDone: "response.content_part.done",
    position: "content_index",
    part: (text: string, annotations: ReadonlyArray<object>) => ({
      type: "output_text",
      text,
      annotations,
      logprobs: []
    }),
    more: ',"logprobs":[]'
  },
  rs: {
    partAdded: "response.reasoning_summary_part.added",
    delta: "response.reasoning_summary_text.delta",
    done: "response.reasoning_summary_text.done",
    partDone: "response.reasoning_summary_part.done",
    position: "summary_index",
    part: (text: string, _annotations: ReadonlyArray<object>) => ({ type: "summary_text", text }),
    more: ""
  }
} as const

/** Stands for a text in an object that is written as JSON. */
export const mark = "\u0000"
const escapedMark = JSON.stringify(mark).slice(1, -1)

const replaceMark = (json: string, text: string, at: number): string =>
  json.slice(0, at) + text + json.slice(at + escapedMark.length)

/** The JSON with a text, escaped piece by piece, instead of the first mark: sources follow it. */
export const withText = (json: string, text: string): string => replaceMark(json, text, json.indexOf(escapedMark))

/** The same for the last mark: a tool's name precedes its arguments. */
export const withArguments = (json: string, text: string): string =>
  replaceMark(json, text, json.lastIndexOf(escapedMark))
