import { Command, Options } from "@effect/cli"
import { Effect, Redacted } from "effect"
import * as Changes from "../services/admin/WebhookChanges.ts"
import { Webhooks } from "../services/webhooks/Webhooks.ts"
import { change, command, filterOf, findOrganization } from "./Commands.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

const deliveryColumns = ["at", "id", "type", "url", "state", "tries", "status", "failure", "next_at"]

const endpoint = Inputs.word("ENDPOINTID", "an endpoint's id, whe_…")

const add = command(
  "add",
  "Send an organization's events to a URL. Its secret is shown this once.",
  { org: Inputs.orgOption, url: Inputs.text("url").pipe(Options.withDescription("a public http or https URL")) },
  Effect.fnUntraced(function* ({ org, url }) {
    const { record, value } = yield* Changes.addEndpoint(org, url)
    const { id, ...rest } = record
    const secret = value && { secret: Redacted.value(value.secret) }
    return Output.record({ id, ...secret, ...rest }, "Keep the secret: it is not shown again.")
  })
)

const list = command(
  "list",
  "List endpoints and what last failed at each.",
  { org: Inputs.orgFilter },
  Effect.fnUntraced(function* ({ org }) {
    const { list } = yield* Webhooks
    return Output.list((yield* list(yield* filterOf(org))).map(Changes.endpointRecord), {
      columns: ["id", "org", "url", "pending", "failure", "failed_at", "disabled_at"],
      none: "There are no webhook endpoints."
    })
  })
)

const remove = change(
  "remove",
  "Remove an endpoint and everything that was written for it.",
  { id: endpoint },
  ({ id }) => Changes.removeEndpoint(id)
)

const enable = change(
  "enable",
  "Send to an endpoint again that was disabled because it answered 410.",
  { id: endpoint },
  ({ id }) => Changes.enableEndpoint(id)
)

const deliveries = command(
  "deliveries",
  "List deliveries, newest first.",
  {
    org: Inputs.orgFilter,
    failed: Inputs.flag("failed", "only those that were given up"),
    limit: Inputs.limit(10_000, "how many deliveries")
  },
  Effect.fnUntraced(function* ({ failed, limit, org }) {
    const { deliveries } = yield* Webhooks
    const found = yield* deliveries({ org: yield* filterOf(org), state: failed ? "failed" : undefined, limit })
    return Output.list(found.map(Changes.deliveryRecord), {
      columns: deliveryColumns,
      none: "There are no deliveries."
    })
  })
)

const replay = command(
  "replay",
  "Send an event again, under the same id.",
  { id: Inputs.word("ID", "an event's id, evt_…") },
  ({ id }) =>
    Effect.map(Changes.replayEvent(id), ({ record }) => Output.list(record, { columns: deliveryColumns, none: "" }))
)

const secret = command(
  "secret",
  "Show the secret that signs for an organization's webhook_url.",
  {
    org: Inputs.orgOption,
    reissue: Inputs.flag("reissue", "replace it; the old one stops at once")
  },
  Effect.fnUntraced(function* ({ org, reissue }) {
    const { id } = yield* findOrganization(org)
    if (reissue) yield* Changes.reissueSecret(id)
    const { secret } = yield* Webhooks
    return Output.record({ id, secret: Redacted.value(yield* secret(id, { reissue: false })) })
  })
)

export const webhooks = Inputs.group("webhooks", "Events that are sent to customers' servers.").pipe(
  Command.withSubcommands([add, list, remove, enable, deliveries, replay, secret])
)
