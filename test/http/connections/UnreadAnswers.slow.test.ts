import http from "node:http"
import net from "node:net"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { connectionLimits } from "../../../src/http/connections/ConnectionLimits.ts"
import { openAccount } from "../../harness/client/Account.ts"
import { openStream } from "../../harness/client/ChatClient.ts"
import { times, waitUntil } from "../../harness/database/Money.ts"
import { deploymentTest } from "../../harness/gateway/Deployment.ts"
import { assert, describe } from "../../harness/It.ts"
import { sse } from "../../harness/upstream/FakeUpstream.ts"
import { delta } from "../../harness/upstream/Replies.ts"
import { openTo } from "./RawSocket.ts"

const root = fileURLToPath(new URL("../../..", import.meta.url))
const descriptors = 300

/** Requests for large pages over one connection, which need no key. */
const askForPages = (url: string, count: number) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const { hostname, port } = new URL(url)
      const socket = net.connect({ host: hostname, port: Number(port) }).on("error", () => {})
      socket.write("GET /docs HTTP/1.1\r\nHost: x\r\n\r\n".repeat(count))
      return socket
    }),
    (socket) => Effect.sync(() => socket.destroy())
  )

/** Node takes some of the answer into its buffer, then it stops. */
const readNothing = (url: string) =>
  Effect.tap(askForPages(url, 60), (socket) =>
    Effect.async<void>((resume) => void socket.once("readable", () => resume(Effect.void)))
  )

const pauseMillis = 20

/** Reads page after page, some MB a second, and thus longer than the test lasts. Between two it may be closed. */
const readSlowly = (url: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
      let received = 0
      let broken = 0
      const readPage = () => {
        const request = http.get(`${url}/docs/reference`, { agent }, (response) => {
          response.on("data", (chunk: Buffer) => {
            received += chunk.length
            response.pause()
            setTimeout(() => response.resume(), pauseMillis)
          })
          response.on("error", () => (broken += 1)).once("end", readPage)
        })
        request.once("error", () => setTimeout(readPage, pauseMillis))
      }
      readPage()
      return { agent, received: () => received, broken: () => broken }
    }),
    ({ agent }) => Effect.sync(() => agent.destroy())
  )

const health = (url: string) =>
  Effect.scoped(
    Effect.flatMap(openTo(url), ({ answer, write }) =>
      Effect.zipRight(write("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), answer(1))
    )
  )

describe("connections whose clients read nothing", () => {
  for (const trustedProxies of [0, 1]) {
    deploymentTest(
      `give way to new ones, and those of clients that read do not: TRUST_PROXY=${trustedProxies}`,
      function* ({ gateway, upstream }) {
        const { url } = yield* gateway({
          command: { line: ["sh", "-c", `ulimit -n ${descriptors}; exec node dist/gateway.js serve`], cwd: root },
          env: { TRUST_PROXY: String(trustedProxies) }
        })
        const { secret } = yield* openAccount({})
        yield* upstream.script(sse(delta("Hello"), Effect.never))
        const stream = yield* openStream({ url, secret })
        yield* stream.until("Hello")
        const reader = yield* readSlowly(url)
        yield* waitUntil(() => reader.received() > 0)
        const { perAddress } = connectionLimits({ trustedProxies, descriptors })
        yield* Effect.forEach(times(perAddress - 2), () => readNothing(url))
        for (let nth = 1; nth <= 10; nth++) assert.strictEqual((yield* health(url)).status, 200)
        const before = reader.received()
        yield* waitUntil(() => reader.received() > before)
        assert.strictEqual(reader.broken(), 0)
        yield* stream.leave
      }
    )
  }
})
