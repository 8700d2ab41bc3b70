import net from "node:net"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { connectionLimits } from "../../../src/http/connections/Connections.ts"
import { openAccount } from "../../harness/client/Account.ts"
import { openStream } from "../../harness/client/ChatClient.ts"
import { eventually, times, waitUntil } from "../../harness/database/Money.ts"
import { deploymentTest } from "../../harness/gateway/Deployment.ts"
import { describe } from "../../harness/It.ts"
import { sse } from "../../harness/upstream/FakeUpstream.ts"
import { delta } from "../../harness/upstream/Replies.ts"
import { openTo } from "./RawSocket.ts"

const root = fileURLToPath(new URL("../../..", import.meta.url))
const descriptors = 300

const page = "GET /docs HTTP/1.1\r\nHost: x\r\n\r\n"
/** A page is larger. */
const pageBytes = 400_000

/** Requests for large pages over one connection, which need no key. */
const askForPages = (url: string, count: number) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const { hostname, port } = new URL(url)
      const socket = net.connect({ host: hostname, port: Number(port) }).on("error", () => {})
      socket.write(page.repeat(count))
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

/** Reads some MB a second, and thus longer than the test lasts. */
const readSlowly = (url: string) =>
  Effect.map(askForPages(url, 60), (socket) => {
    let received = 0
    let pages = 0
    socket.on("data", (chunk) => {
      received += chunk.length
      for (; pages < Math.floor(received / pageBytes); pages++) socket.write(page)
      socket.pause()
      setTimeout(() => socket.resume(), pauseMillis)
    })
    return { socket, received: () => received }
  })

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
        for (let nth = 1; nth <= 10; nth++) yield* eventually(health(url), ({ status }) => status === 200)
        const before = reader.received()
        yield* waitUntil(() => reader.received() > before)
        yield* stream.leave
      }
    )
  }
})
