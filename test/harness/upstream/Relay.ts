import { request } from "node:http"
import type { Reply } from "./FakeUpstream.ts"

/** Passes a request on to another server and its answer back, broken off where it breaks off. */
export const relay =
  (target: string): Reply =>
  (response, { bytes, headers, method, path }) => {
    const { connection: _, ...kept } = headers
    const passing = request(new URL(path, target), { method, headers: kept, agent: false }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
      answer.on("close", () => answer.complete || response.destroy())
    })
    passing.on("error", () => response.destroy())
    response.on("close", () => passing.destroy())
    passing.end(bytes)
  }
