import { Struct } from "effect"
import { zodResponsesFunction, zodTextFormat } from "openai/helpers/zod"
import type { ResponseInput, ResponseStreamEvent, ResponseUsage } from "openai/resources/responses/responses"
import { z } from "zod"
import { refusals } from "../harness/client/HttpCalls.ts"
import { asJson, assertClientError, calling, drained, thrownBy } from "../harness/client/OfficialClients.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { costOf, gateway, model, pixel } from "./SandboxChat.ts"

const usageCost = (usage: ResponseUsage | undefined): bigint => costOf(usage?.input_tokens, usage?.output_tokens)

const weather = {
  type: "function" as const,
  name: "weather",
  description: "The weather of a city",
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  strict: false
}

const typesOf = (events: ReadonlyArray<ResponseStreamEvent>) => [...new Set(events.map(({ type }) => type))]

withLayer(gateway)("the official client's responses with the sandbox", (it) => {
  it.effect("are created whole, with what they cost", function* () {
    const { openai, spent } = yield* Served.customer()
    const { data, request_id, response } = yield* calling(() =>
      openai.responses
        .create({ model, instructions: "Be kind.", input: "Hello there", metadata: { turn: "1" }, store: true })
        .withResponse()
    )
    assert.strictEqual(response.headers.get("x-gateway-sandbox"), "true")
    assert.strictEqual(request_id, response.headers.get("x-request-id"))
    assert.match(data.id, /^resp_[0-9a-f]{32}$/)
    assert.deepInclude(data, {
      object: "response",
      model,
      status: "completed",
      error: null,
      incomplete_details: null,
      instructions: "Be kind.",
      metadata: { turn: "1" }
    })
    assert.propertyVal(asJson(data), "store", false)
    assert.include(data.output_text, "Hello there")
    assert.deepStrictEqual(data.output.map(Struct.get("type")), ["message"])
    const { input_tokens = 0, output_tokens = 0, total_tokens } = data.usage ?? {}
    assert.isAbove(input_tokens, 0)
    assert.strictEqual(total_tokens, input_tokens + output_tokens)
    assert.strictEqual(yield* spent, usageCost(data.usage))
  })

  it.effect("are streamed with every event of a text, raw and through the helper", function* () {
    const { openai, spent } = yield* Served.customer()
    const asked = { model, input: "Grüß dich 👋", reasoning: { effort: "medium" as const } }
    const whole = yield* calling(() => openai.responses.create(asked))
    const raw = yield* drained(yield* calling(() => openai.responses.create({ ...asked, stream: true })))
    assert.isUndefined(raw.error)
    assert.deepStrictEqual(typesOf(raw.items), [
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.reasoning_summary_part.added",
      "response.reasoning_summary_text.delta",
      "response.reasoning_summary_text.done",
      "response.reasoning_summary_part.done",
      "response.output_item.done",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.completed"
    ])
    assert.deepStrictEqual(
      raw.items.map((event) => ("sequence_number" in event ? event.sequence_number : -1)),
      raw.items.map((_, at) => at)
    )
    const helped = yield* calling(() => openai.responses.stream(asked).finalResponse())
    assert.strictEqual(helped.output_text, whole.output_text)
    assert.deepStrictEqual(helped.usage, whole.usage)
    assert.deepStrictEqual(helped.output.map(Struct.get("type")), ["reasoning", "message"])
    assert.strictEqual(yield* spent, 3n * usageCost(whole.usage))
  })

  it.effect("are parsed into the text and the arguments of a schema", function* () {
    const { openai } = yield* Served.customer()
    const Person = z.object({ name: z.string(), age: z.number().int() })
    const person = yield* calling(() =>
      openai.responses.parse({ model, input: "A person", text: { format: zodTextFormat(Person, "person") } })
    )
    assert.isTrue(Person.safeParse(person.output_parsed).success)
    const City = z.object({ city: z.string() })
    const called = yield* calling(() =>
      openai.responses
        .stream({
          model,
          input: "Weather in Wien?",
          tools: [zodResponsesFunction({ name: "weather", parameters: City })]
        })
        .finalResponse()
    )
    const [call] = called.output
    assert.isTrue(call?.type === "function_call" && City.safeParse(call.parsed_arguments).success)
  })

  for (const isStream of [false, true]) {
    it.effect(`call tools over two turns, ${isStream ? "streamed" : "whole"}`, function* () {
      const { openai, spent } = yield* Served.customer()
      const patch = { type: "custom" as const, name: "apply_patch", description: "Edits files" }
      const tools = [
        weather,
        patch,
        {
          type: "namespace" as const,
          name: "agents_v1",
          description: "Sub-agents",
          tools: [{ ...weather, name: "spawn" }]
        },
        { type: "web_search" as const }
      ]
      const ask = (input: ResponseInput) => {
        const body = { model, tools, include: ["reasoning.encrypted_content" as const], input }
        return calling(() => (isStream ? openai.responses.stream(body).finalResponse() : openai.responses.create(body)))
      }
      const asked = { role: "user" as const, content: "Use weather, apply_patch and agents_v1__spawn." }
      const first = yield* ask([asked])
      const calls = first.output.filter((item) => item.type === "function_call" || item.type === "custom_tool_call")
      assert.deepStrictEqual(
        calls.map(({ name, namespace, type }) => [type, name, namespace]),
        [
          ["function_call", "weather", undefined],
          ["custom_tool_call", "apply_patch", undefined],
          ["function_call", "spawn", "agents_v1"]
        ]
      )
      assert.strictEqual(first.output[0]?.type, "reasoning")
      const outputs = calls.map(({ call_id, type }) => ({ type: `${type}_output` as const, call_id, output: "sunny" }))
      const reasoning = first.output.filter((item) => item.type === "reasoning")
      const second = yield* ask([asked, ...reasoning, ...calls, ...outputs])
      assert.include(second.output_text, "sunny")
      assert.strictEqual(yield* spent, usageCost(first.usage) + usageCost(second.usage))
    })
  }

  it.effect("show pictures to the model, those of tools too", function* () {
    const { openai } = yield* Served.customer()
    const image = { type: "input_image" as const, image_url: `data:image/png;base64,${pixel}`, detail: "auto" as const }
    const { output_text } = yield* calling(() =>
      openai.responses.create({
        model,
        input: [
          { role: "user", content: [{ type: "input_text", text: "Look" }, image] },
          { type: "function_call", call_id: "c1", name: "view_image", arguments: "{}" },
          { type: "function_call_output", call_id: "c1", output: [{ type: "input_text", text: "here" }, image] }
        ]
      })
    )
    assert.include(output_text, "2 images")
  })

  it.effect("end incomplete at the cap", function* () {
    const { openai } = yield* Served.customer()
    const asked = { model, input: "Hello there", max_output_tokens: 3 }
    const whole = yield* calling(() => openai.responses.create(asked))
    const streamed = yield* calling(() => openai.responses.stream(asked).finalResponse())
    for (const response of [whole, streamed]) {
      assert.strictEqual(response.status, "incomplete")
      assert.deepStrictEqual(response.incomplete_details, { reason: "max_output_tokens" })
      assert.strictEqual(response.usage?.output_tokens, 3)
    }
  })

  it.effect("are not kept", function* () {
    const { openai } = yield* Served.customer()
    const told = { status: 400, type: "invalid_request_error", code: null }
    const { id } = yield* calling(() => openai.responses.create({ model, input: "hi" }))
    for (const [field, value] of [
      ["previous_response_id", id],
      ["conversation", "conv_1"]
    ] as const) {
      const error = yield* thrownBy(() => openai.responses.create({ model, input: "hi", [field]: value }))
      const message = `\`${field}\` is not supported: send the whole conversation in \`input\`.`
      assertClientError(error, { ...told, param: field, message })
    }
    const inBackground = yield* thrownBy(() => openai.responses.create({ model, input: "hi", background: true }))
    const message = "`background` must be false: the gateway stores no responses."
    assertClientError(inBackground, { ...told, param: "background", message })
    for (const call of [openai.responses.retrieve(id), openai.responses.delete(id), openai.responses.cancel(id)]) {
      assertClientError(yield* thrownBy(() => call), refusals.noEndpoint)
    }
  })
})
