import { Command, Options } from "@effect/cli"
import { Effect, Redacted, Struct } from "effect"
import { OrganizationScope } from "../domain/OrganizationScope.ts"
import { Organizations } from "../services/admin/Organizations.ts"
import * as Operations from "../services/admin/WebhookOperations.ts"
import { Webhooks } from "../services/webhooks/Webhooks.ts"
import { command, findOrganization, findOrganizationId, operate } from "./CommandBuilders.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

const deliveryColumns = ["at", "id", "type", "url", "state", "tries", "status", "failure", "next_at"]

const endpoint = Inputs.word("ENDPOINTID", "an endpoint's id, whe_…")

const add = command(
  "add",
  `${Operations.add.summary}. The signing secret is shown once.`,
  { org: Inputs.orgOption, url: Inputs.text("url").pipe(Options.withDescription("a public http or https URL")) },
  Effect.fnUntraced(function* ({ org, url }) {
    const { record, value } = yield* Operations.add.run(org, url)
    const { id, ...rest } = record
    const secret = value && { secret: Redacted.value(value.secret) }
    return Output.record({ id, ...secret, ...rest }, "Store the secret now. It is not shown again.")
  })
)

const list = command(
  "list",
  "List webhook endpoints with their last failure.",
  { org: Inputs.orgFilter },
  Effect.fnUntraced(function* ({ org }) {
    const { list } = yield* Webhooks
    const organizations = yield* Effect.flatMap(Organizations, ({ list }) => list)
    const names = new Map(organizations.map(({ id, name }) => [id, name]))
    const endpoints = yield* list(yield* findOrganizationId(org))
    return Output.list(
      endpoints.map((endpoint) => ({ ...endpoint, org_name: names.get(endpoint.org) })),
      {
        columns: ["org_name", "url", "pending", "failure", "failed_at", "disabled_at", "id"],
        none: "There are no webhook endpoints."
      }
    )
  })
)

const remove = operate("remove", Operations.remove, endpoint)
const enable = operate("enable", Operations.enable, endpoint)

const test = command(
  "test",
  `${Operations.test.summary}.`,
  { id: endpoint },
  Effect.fnUntraced(function* ({ id }) {
    const result = yield* Operations.test.run(id)
    const failure = result.failure === null ? undefined : `The event was not delivered: ${result.failure}`
    return { ...Output.record(result), failure }
  })
)

const deliveries = command(
  "deliveries",
  "List deliveries, newest first.",
  {
    org: Inputs.orgFilter,
    failed: Inputs.flag("failed", "only deliveries that the gateway has given up on"),
    limit: Inputs.limit(10_000, "maximum number of deliveries")
  },
  Effect.fnUntraced(function* ({ failed, limit, org }) {
    const { deliveries } = yield* Webhooks
    const found = yield* deliveries(OrganizationScope.all, {
      org: yield* findOrganizationId(org),
      state: failed ? "failed" : undefined,
      limit
    })
    return Output.list(found.map(Struct.omit("row")), {
      columns: deliveryColumns,
      none: "There are no deliveries."
    })
  })
)

const replay = command(
  "replay",
  `${Operations.replay.summary}.`,
  { id: Inputs.word("ID", "an event's id, evt_…") },
  ({ id }) =>
    Effect.map(Operations.replay.run(id), ({ record }) => Output.list(record, { columns: deliveryColumns, none: "" }))
)

const secret = command(
  "secret",
  "Show the signing secret for events that are sent to a request's webhook_url.",
  {
    org: Inputs.orgOption,
    reissue: Inputs.flag("reissue", "replace the secret; the old one stops working at once")
  },
  Effect.fnUntraced(function* ({ org, reissue }) {
    const { id } = yield* findOrganization(org)
    if (reissue) yield* Operations.reissueSecret.run(id)
    const { secret } = yield* Webhooks
    return Output.record({ id, secret: Redacted.value(yield* secret(id, { reissue: false })) })
  })
)

export const webhooks = Inputs.group("webhooks", "Manage webhook endpoints and deliveries.").pipe(
  Command.withSubcommands([add, list, remove, enable, test, deliveries, replay, secret])
)
