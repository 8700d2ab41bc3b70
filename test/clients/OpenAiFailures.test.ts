import { SqlClient } from "@effect/sql"
import { Effect, Fiber, Layer, Predicate, Struct } from "effect"
import { refusals } from "../harness/client/HttpCalls.ts"
import {
  assertClientError,
  calling,
  contentOf,
  drained,
  type Told,
  thrownBy
} from "../harness/client/OfficialClients.ts"
import { chatCatalog } from "../harness/fixtures/ChatCatalog.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { maxStall } from "../harness/gateway/ShortTimings.ts"
import { assert, withLayer } from "../harness/It.ts"
import { answer, cost, delta, end, FakeUpstream, layer as upstream } from "../harness/upstream/ChatUpstream.ts"
import { cut, event, json, type Reply, type Step, silent, sse, text } from "../harness/upstream/FakeUpstream.ts"
import { refusedAs } from "./Refusal.ts"

const alone = (model: string) => [{ provider: "fake", model }]
const both = (model: string) => [...alone(model), { provider: "spare", model, preference: 2 }]

const gateway = Served.layer(
  Effect.map(FakeUpstream, ({ url }) => {
    const open = { adapter: "openai-chat", base_url: url, credential: "FAKE_KEY" }
    return {
      catalog: chatCatalog(
        { fake: open, spare: open, gone: { ...open, base_url: "http://127.0.0.1:1/v1" } },
        {
          failing: alone("failing"),
          page: alone("page"),
          hidden: alone("hidden"),
          account: alone("account"),
          pair: both("pair"),
          gone: [{ provider: "gone", model: "gone" }],
          mute: alone("mute"),
          rejecting: both("rejecting"),
          moderating: both("moderating"),
          talk: alone("talk"),
          cut: both("cut"),
          ending: both("ending"),
          saying: both("saying"),
          stalling: both("stalling")
        }
      ),
      env: { FAKE_KEY: "secret", REQUEST_TIMEOUT: "2", IDLE_TIMEOUT: "1", LOG_LEVEL: "none" },
      timings: { settleWithin: maxStall }
    }
  })
).pipe(Layer.provideMerge(upstream))

const ask = (model: string) => ({ model, messages: [{ role: "user" as const, content: "hi" }] })

/** What a provider says of itself, of which nothing may reach a client. */
const their = (code: string | null) => ({
  error: { message: "secret of theirs-7", type: "their_type", param: "their_param", code }
})

const timedOut: Told = refusals.timedOut
const internal: Told = refusals.internal

/** Makes every row of one organization impossible to write into a table. */
const refusing = (table: string, org: string) =>
  Effect.acquireRelease(
    Effect.flatMap(SqlClient.SqlClient, (sql) =>
      Effect.as(
        sql.unsafe(`
          CREATE FUNCTION refuse_${org}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF NEW.org_id = '${org}' THEN RAISE EXCEPTION 'refused'; END IF;
            RETURN NEW;
          END $$;
          CREATE TRIGGER refuse_${org} BEFORE INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION refuse_${org}()`),
        sql
      )
    ),
    (sql) => Effect.orDie(sql.unsafe(`DROP FUNCTION refuse_${org} CASCADE`))
  )

withLayer(gateway)("the official client when providers fail", (it) => {
  /** The same for a JSON answer and for a stream that has not begun. */
  const fails = (title: string, model: string, replies: ReadonlyArray<Reply>, told: Told, param?: string) =>
    it.effect(`gets a ${told.status} when ${title}`, function* () {
      const one = yield* Served.customer()
      const { script } = yield* FakeUpstream
      for (const stream of [false, true]) {
        yield* script(...replies)
        const whole = param === undefined ? told : { ...told, param }
        const { row } = yield* refusedAs(one, { ...ask(model), stream }, whole)
        assert.lengthOf(row.attempts, Math.max(1, replies.length))
      }
    })

  fails("the only route answers an error", "failing", [json(500, their(null))], refusals.upstream)
  fails("the only route answers a page", "page", [text(400, "text/html", "<html>no</html>")], refusals.upstream)
  fails(
    "the only route answers 200 with an error in it",
    "hidden",
    [json(200, their("server_error"))],
    refusals.upstream
  )
  fails("every route fails", "pair", [json(503, their(null)), json(502, their(null))], refusals.allFailed("spare", 502))
  fails("no answer was received at all", "gone", [], refusals.allFailed("gone", "network"))
  fails("nothing comes within the time", "mute", [silent], timedOut)
  fails(
    "the provider rejects the request",
    "rejecting",
    [json(400, their("context_length_exceeded"))],
    refusals.rejected
  )
  fails(
    "the provider's moderation refuses the request",
    "moderating",
    [json(400, their("content_policy_violation"))],
    refusals.moderated
  )

  it.effect("gets a 502 for a fault of the provider's account, then a 503 while its route is closed", function* () {
    const one = yield* Served.customer()
    const { script } = yield* FakeUpstream
    yield* script(json(403, their(null)))
    const first = refusals.upstreamAuth
    yield* refusedAs(one, ask("account"), first)
    const then = refusals.noProvider
    const { row } = yield* refusedAs(one, ask("account"), then)
    assert.deepStrictEqual(row.attempts.map(Struct.get("outcome")), ["skipped"])
  })

  it.scoped("gets a 500 when no hold can be placed", function* () {
    const one = yield* Served.customer()
    yield* refusing("open_holds", one.org)
    yield* refusedAs(one, ask("talk"), internal)
    yield* refusedAs(one, { ...ask("talk"), stream: true }, internal)
    assert.strictEqual(yield* one.spent, 0n)
  })

  it.scoped("gets a 500, or an error chunk in a stream, when the charge fails", function* () {
    const one = yield* Served.customer()
    const { script } = yield* FakeUpstream
    yield* refusing("ledger_entries", one.org)
    const free: Reply = (response, asked) =>
      (Predicate.hasProperty(asked.body, "stream") ? sse(delta("fr"), delta("ee"), end) : answer("free"))(
        response,
        asked
      )
    yield* script(free, free)
    const whole = yield* Effect.fork(thrownBy(() => one.openai.chat.completions.create(ask("talk"))))
    const stream = yield* calling(() => one.openai.chat.completions.create({ ...ask("talk"), stream: true }))
    const { error, items } = yield* drained(stream)
    assert.strictEqual(contentOf(items), "free")
    assertClientError(error, { ...internal, status: undefined })
    assertClientError(yield* Fiber.join(whole), internal)
    assert.strictEqual(yield* one.spentInTheEnd, 0n)
  })

  /** After its first output a stream never moves on: the client gets what there was, then an error, for nothing. */
  const breaks = (title: string, model: string, rest: ReadonlyArray<Step>, told: Told) =>
    it.effect(`gets an error in a stream that ${title}`, function* () {
      const { baseUrl, openai, secret, spent } = yield* Served.customer()
      const { script } = yield* FakeUpstream
      const reply = sse(delta("Ser"), delta("vus"), ...rest)
      const body = { ...ask(model), stream: true as const }
      yield* script(reply, reply, reply)
      const { data, response } = yield* calling(() => openai.chat.completions.create(body).withResponse())
      const { error, items } = yield* drained(data)
      assert.strictEqual(response.status, 200)
      assert.strictEqual(contentOf(items), "Servus")
      const { message, type, code } = told
      assertClientError(error, { ...told, status: undefined })
      assert.strictEqual(yield* spent, 0n)
      const row = yield* Served.logged(response.headers.get("x-request-id"))
      assert.deepStrictEqual([row.status, row.code, row.attempts.length], [200, "stream_error", 1])

      assertClientError(yield* thrownBy(() => openai.chat.completions.stream(body).done()), {
        ...told,
        status: undefined
      })
      const raw = yield* calling(() =>
        fetch(`${baseUrl}/chat/completions`, {
          method: "POST",
          headers: { authorization: `Bearer ${secret}` },
          body: JSON.stringify(body)
        }).then((whole) => whole.text())
      )
      assert.isTrue(raw.endsWith(`\n\ndata: ${JSON.stringify({ error: { message, type, param: null, code } })}\n\n`))
      assert.notInclude(raw, "[DONE]")
      assert.strictEqual(yield* spent, 0n)
    })

  const broken = refusals.upstream
  breaks("loses its connection", "cut", [cut], broken)
  breaks("ends without its end mark", "ending", [], broken)
  breaks("says that it failed", "saying", [event(their("server_error")), end], broken)
  breaks("falls silent", "stalling", [Effect.never], timedOut)

  it.effect("gets and pays for a complete stream beside all of this", function* () {
    const { openai, spent } = yield* Served.customer()
    const { script } = yield* FakeUpstream
    yield* script(sse(delta("Ser"), delta("vus"), end))
    assert.strictEqual(yield* calling(() => openai.chat.completions.stream(ask("talk")).finalContent()), "Servus")
    assert.strictEqual(yield* spent, cost)
  })
})
