import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Effect, Schema } from "effect"
import { InsufficientRole } from "../../domain/Failure.ts"
import { toUsdText } from "../../domain/Money.ts"
import { CurrentActor } from "../../services/admin/Actor.ts"
import * as Changes from "../../services/admin/CreditChanges.ts"
import { RefundRecord, TopUpRecord } from "../../services/admin/CreditChanges.ts"
import { Entry } from "../../services/ledger/Entry.ts"
import type { WouldOverdraw } from "../../services/ledger/LedgerAdmin.ts"
import { body, field, optionalField, Text } from "../../services/resources/BodyFields.ts"
import { oneOf } from "../schema/Query.ts"
import { adminApiOf, ChangeErrors, WriteAccess } from "./Access.ts"
import {
  conflict,
  invalid,
  noteText,
  notFound,
  organizationReference,
  paymentReference,
  recordOf,
  usd
} from "./Fields.ts"

const noteMeaning = "Why, for the ledger."

const add = HttpApiEndpoint.post("add", "/credits")
  .setPayload(
    body({
      organization: field("organization", ...organizationReference, "Whose balance: an id or a name."),
      type: field("type", ...oneOf("top_up", "adjustment"), "A payment, or a correction up or down."),
      amount_usd: field("amount_usd", ...usd.nonZero, "Above 0 for a top-up."),
      ref: optionalField("ref", ...paymentReference, "A payment's own reference; the same one is never added twice."),
      note: optionalField("note", ...noteText, `${noteMeaning} An adjustment needs one.`),
      force: optionalField(
        "force",
        Schema.Boolean,
        "must be true or false",
        "Adjust even if less than nothing is left available; needs the role owner."
      )
    })
  )
  .addSuccess(Schema.Union(TopUpRecord, Entry), { status: 201 })
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, "Enter a payment, or correct a balance")

const refund = HttpApiEndpoint.post("refund", "/credits/refunds")
  .setPayload(
    body({
      request_id: field(
        "request_id",
        Text,
        "must be a text",
        "The `x-request-id` of an answer, or the id of a row of the log."
      ),
      amount_usd: optionalField("amount_usd", ...usd.positive, "All that was not given back before, if left out."),
      note: field("note", ...noteText, noteMeaning)
    })
  )
  .addSuccess(RefundRecord, { status: 201 })
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, "Give back what a request was charged")

export const CreditsGroup = HttpApiGroup.make("credits").add(add).add(refund).addError(ChangeErrors)

const explain = ({ available }: WouldOverdraw) =>
  conflict("amount_usd")({
    message: `Only ${toUsdText(available)} USD are available; \`force\`, by an owner, goes below zero all the same.`
  })

export const CreditsHandlers = HttpApiBuilder.group(adminApiOf(CreditsGroup), "credits", (handlers) =>
  handlers
    .handle("add", ({ payload: { amount_usd: amount, force, note, organization: org, ref, type } }) =>
      Effect.gen(function* () {
        if (type === "top_up") {
          if (amount < 0n) return yield* invalid("amount_usd")({ message: `\`amount_usd\` ${usd.positive[1]}.` })
          if (force === true) return yield* invalid("force")({ message: "`force` is for adjustments." })
          return yield* recordOf(Changes.topUp({ org, amount, ref, note }))
        }
        if (ref !== undefined) return yield* invalid("ref")({ message: "`ref` is for top-ups." })
        if (note === undefined) return yield* invalid("note")({ message: "An adjustment needs a `note`." })
        const { role } = yield* CurrentActor
        if (force === true && role !== "owner") return yield* new InsufficientRole({ needed: "owner" })
        return yield* recordOf(Changes.adjust({ org, amount, note, force: force === true }))
      }).pipe(
        Effect.catchTags({
          OrganizationNotFound: invalid("organization"),
          RefTaken: conflict("ref"),
          RefReserved: invalid("ref"),
          WouldOverdraw: explain
        })
      )
    )
    .handle("refund", ({ payload: { amount_usd: amount, note, request_id: request } }) =>
      recordOf(Changes.refund({ request, amount, note })).pipe(
        Effect.catchTags({ RequestUnknown: notFound, RefundRefused: conflict(null) })
      )
    )
)
