import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { RefundRecord, TopUpRecord } from "../../../services/admin/CreditChanges.ts"
import { Entry } from "../../../services/ledger/Entry.ts"
import { body, field, optionalField, Text, usdWhere } from "../../../services/resources/BodyFields.ts"
import { ChangeErrors, WriteAccess } from "../Access.ts"
import { Filled, filledProblem, Reference, referenceProblem, usdProblem } from "../Fields.ts"

const noteMeaning = "Why, for the ledger."

const add = HttpApiEndpoint.post("add", "/credits")
  .setPayload(
    body({
      organization: field("organization", Text, "must be an id or a name", "Whose balance: an id or a name."),
      type: field(
        "type",
        Schema.Literal("top_up", "adjustment"),
        "must be one of top_up, adjustment",
        "A payment, or a correction up or down."
      ),
      amount_usd: field(
        "amount_usd",
        usdWhere((amount) => amount !== 0n),
        usdProblem.nonZero,
        "Above 0 for a top-up."
      ),
      ref: optionalField(
        "ref",
        Reference,
        referenceProblem,
        "A payment's own reference; the same one is never added twice."
      ),
      note: optionalField("note", Filled, filledProblem, `${noteMeaning} An adjustment needs one.`),
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
      amount_usd: optionalField(
        "amount_usd",
        usdWhere((amount) => amount > 0n),
        usdProblem.positive,
        "All that was not given back before, if left out."
      ),
      note: field("note", Filled, filledProblem, noteMeaning)
    })
  )
  .addSuccess(RefundRecord, { status: 201 })
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, "Give back what a request was charged")

export const CreditsGroup = HttpApiGroup.make("credits").add(add).add(refund).addError(ChangeErrors)
