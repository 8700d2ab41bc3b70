import type { Bug } from "./Bug.ts"

const holdSql = "src/services/ledger/HoldSql.ts"
const refundSql = "src/services/ledger/RefundSql.ts"
const releaseSql = "src/services/ledger/ReleaseSql.ts"
const settleSql = "src/services/ledger/SettleSql.ts"
const model = "test/model/LedgerModel.long.test.ts"

export const moneyBugs: ReadonlyArray<Bug> = [
  {
    name: "an organization's cap is compared without the open holds of its jobs",
    file: "src/services/ledger/LimitSql.ts",
    find: "payers.cap_spent + job_holds_of(payers.id)",
    replace: "payers.cap_spent",
    caughtBy: [model, "test/services/ledger/OrganizationCaps.test.ts"]
  },
  {
    name: "a hold is charged whether or not it was released",
    file: settleSql,
    find: "WHERE ${isOpen} AND hold.released_at IS NULL",
    replace: "WHERE ${isOpen}",
    caughtBy: [model]
  },
  {
    name: "a hold is charged and stays open",
    file: settleSql,
    find: "DELETE FROM open_holds AS hold USING input WHERE ${isOpen} AND hold.released_at IS NULL",
    replace:
      "UPDATE open_holds AS hold SET amount = hold.amount FROM input WHERE ${isOpen} AND hold.released_at IS NULL",
    caughtBy: [model]
  },
  {
    name: "what was released is forgotten, not moved",
    file: "src/services/ledger/ReleaseSql.ts",
    find: "created_at, released_at FROM released\n  ON CONFLICT",
    replace: "created_at, released_at FROM released WHERE false\n  ON CONFLICT",
    caughtBy: ["test/services/ledger/OpenHolds.test.ts"]
  },
  {
    name: "a charge is taken from the balance twice",
    file: settleSql,
    find: "balance = organizations.balance - sums.charged",
    replace: "balance = organizations.balance - 2 * sums.charged",
    caughtBy: [model]
  },
  {
    name: "a charge does not reach the balance",
    file: settleSql,
    find: ", balance = organizations.balance - sums.charged",
    replace: "",
    caughtBy: [model]
  },
  {
    name: "a release keeps what was held",
    file: releaseSql,
    find: "UPDATE organizations SET held = organizations.held - sums.held",
    replace: "UPDATE organizations SET held = organizations.held - 0 * sums.held",
    caughtBy: [model]
  },
  {
    name: "a batch admits each hold as if it were alone",
    file: holdSql,
    find: "up_to - amount < available AND up_to <= available",
    replace: "amount <= available",
    caughtBy: [model]
  },
  {
    name: "what is held already can be held again",
    file: holdSql,
    find: "SELECT id, balance - held AS available",
    replace: "SELECT id, balance AS available",
    caughtBy: [model]
  },
  {
    name: "an empty balance admits a hold of nothing",
    file: holdSql,
    find: "up_to - amount < available AND up_to <= available",
    replace: "up_to <= available",
    caughtBy: [model, "test/services/ledger/Ledger.test.ts"]
  },
  {
    name: "a spending cap forgets the open holds of jobs",
    file: holdSql,
    find: "WHERE key_id = api_keys.id AND state = 'open' AND instance_id IS NULL",
    replace: "WHERE false",
    caughtBy: [model]
  },
  {
    name: "a charge does not count towards its key's cap",
    file: settleSql,
    find: "DO UPDATE SET spent = key_spend.spent + excluded.spent",
    replace: "DO UPDATE SET spent = key_spend.spent",
    caughtBy: [model]
  },
  {
    name: "a refund does not look whether there was a charge",
    file: refundSql,
    find: "coalesce(hold.charged, 0) - before.amount AS remaining",
    replace: "hold.amount - before.amount AS remaining",
    caughtBy: [model]
  },
  {
    name: "a refund is made as often as it is asked for",
    file: refundSql,
    find: "coalesce(hold.charged, 0) - before.amount AS remaining",
    replace: "coalesce(hold.charged, 0) AS remaining",
    caughtBy: ["test/services/ledger/LedgerAlongside.slow.test.ts"]
  },
  {
    name: "a refund leaves the key's spend as it was",
    file: refundSql,
    find: "UPDATE key_spend SET spent = key_spend.spent - entered.amount",
    replace: "UPDATE key_spend SET spent = key_spend.spent",
    caughtBy: [model]
  },
  {
    name: "holds are swept by age",
    file: "src/services/ledger/HoldSweeper.ts",
    find: "AND (instances.swept_at IS NOT NULL OR",
    replace: "AND (hold.created_at < now() - interval '5 seconds' OR instances.swept_at IS NOT NULL OR",
    caughtBy: ["test/services/ledger/Ledger.test.ts"]
  },
  {
    name: "a process that was taken for dead may go on to hold",
    file: holdSql,
    find: "WHERE id = $6 AND swept_at IS NULL AND",
    replace: "WHERE id = $6 AND",
    caughtBy: ["test/services/ledger/Ledger.test.ts"]
  },
  {
    name: "a charge that may have been made is forgotten when the process ends",
    file: "src/services/ledger/Refunds.ts",
    find: "journal.add(entry).pipe(",
    replace: "Effect.void.pipe(",
    caughtBy: ["test/crashes/Refunds.test.ts"]
  },
  {
    name: "a refund that is asked while a release is tried is forgotten with it",
    file: "src/services/ledger/Refunds.ts",
    find: "if (mayBeCharged !== one.mayBeCharged) return",
    replace: "",
    caughtBy: ["test/services/ledger/Refunds.test.ts"]
  },
  {
    name: "a stop does not wait for refunds",
    file: "src/services/ledger/Refunds.ts",
    find: "Effect.addFinalizer(() =>\n        attemptAll.pipe(",
    replace: "Effect.addFinalizer(() =>\n        Effect.succeed(true).pipe(",
    caughtBy: ["test/services/ledger/Refunds.test.ts"]
  },
  {
    name: "a hold whose answer was lost is not given back",
    file: "src/services/ledger/HoldPlacement.ts",
    find: "const mayBePlaced = placing.get(hold.id) === true",
    replace: "const mayBePlaced = false",
    caughtBy: ["test/services/ledger/Ledger.test.ts"]
  },
  {
    name: "a stream that was cut is charged",
    file: "src/services/chat/ChatCompletions.ts",
    find: "        yield* ledger.release(held)\n        yield* sink.fail(failure)",
    replace: "        yield* Effect.ignore(ledger.settle(held, held.amount))\n        yield* sink.fail(failure)",
    caughtBy: ["test/http/chat/Charges.test.ts", "test/services/chat/ChatCompletions.test.ts"]
  },
  {
    name: "an answer is given before its charge is certain",
    file: "src/services/chat/ChatCompletions.ts",
    find: "Effect.map(settle(task, held, measured, route.cost), (charge) => ({",
    replace:
      "Effect.map(Effect.as(Effect.forkDaemon(settle(task, held, measured, route.cost)), held.amount), (charge) => ({",
    caughtBy: ["test/http/chat/Charges.test.ts", "test/services/chat/ChatCompletions.test.ts"]
  },
  {
    name: "a provider's least output is billed above the cap",
    file: "src/domain/Pricing.ts",
    find: "const completion = Math.min(usage.completion, maxTokens)",
    replace: "const { completion } = usage",
    caughtBy: ["test/http/chat/Holds.test.ts", "test/clients/ResponsesStops.test.ts"]
  },
  {
    name: "a charge is rounded down",
    file: "src/domain/Pricing.ts",
    find: "NanoUsd((total + tokensPerPrice - 1n) / tokensPerPrice)",
    replace: "NanoUsd(total / tokensPerPrice)",
    caughtBy: ["test/domain/Pricing.long.test.ts"]
  },
  {
    name: "cached tokens are paid for twice",
    file: "src/domain/Pricing.ts",
    find: "BigInt(prompt - cached - cacheWrite) * rates.prompt",
    replace: "BigInt(prompt - cacheWrite) * rates.prompt",
    caughtBy: ["test/domain/Pricing.long.test.ts"]
  },
  {
    name: "what is kept for an hour costs as little as any other cache write",
    file: "src/domain/Pricing.ts",
    find: "BigInt(cacheWriteHour) * rates.cacheWriteHour",
    replace: "BigInt(cacheWriteHour) * rates.cacheWrite",
    caughtBy: ["test/domain/Pricing.long.test.ts", "test/http/chat/AgentPrices.test.ts"]
  },
  {
    name: "a hold forgets what is kept for an hour",
    file: "src/domain/Pricing.ts",
    find: "max(prompt, cachedPrompt, cacheWrite, cacheWriteHour)",
    replace: "max(prompt, cachedPrompt, cacheWrite)",
    caughtBy: ["test/domain/Pricing.long.test.ts"]
  },
  {
    name: "searches are free",
    file: "src/domain/Pricing.ts",
    find: "      searchTotal(pricing, webSearches)\n",
    replace: "      searchTotal(pricing, 0 * webSearches)\n",
    caughtBy: ["test/domain/Pricing.long.test.ts", "test/http/chat/AgentPrices.test.ts"]
  },
  {
    name: "a customer pays for searches that the hold does not cover",
    file: "src/domain/Pricing.ts",
    find: "webSearches > maxWebSearches ? {",
    replace: "webSearches < 0 ? {",
    caughtBy: ["test/domain/Pricing.long.test.ts", "test/http/chat/AgentPrices.test.ts"]
  },
  {
    name: "a hold covers the prompt alone",
    file: "src/domain/Pricing.ts",
    find: "roundUp(prompt + BigInt(output) * outputToken)",
    replace: "roundUp(prompt)",
    caughtBy: ["test/domain/Pricing.long.test.ts"]
  },
  {
    name: "a lowered cap costs more than its hold",
    file: "src/domain/Pricing.ts",
    find: "Number(left / outputToken)",
    replace: "Number(left / outputToken) + 1",
    caughtBy: ["test/domain/HoldPrice.long.test.ts"]
  },
  {
    name: "a lowered cap is told to the client and not to the provider",
    file: "src/services/chat/ChatCharging.ts",
    find: "request: { ...request, maxTokens: cap }",
    replace: "request",
    caughtBy: ["test/http/chat/FittedHolds.test.ts"]
  },
  {
    name: "a native body keeps the cap that its client asked for",
    file: "src/providers/anthropic/Native.ts",
    find: "    max_tokens: request.maxTokens,",
    replace: "",
    caughtBy: ["test/clients/LoweredCaps.test.ts"]
  },
  {
    name: "a chat that shares the balance takes what others need",
    file: holdSql,
    find: "amount <= share OR",
    replace: "amount <= available OR",
    caughtBy: [model]
  },
  {
    name: "a chat that waits for its hold waits for ever",
    file: "src/services/chat/HoldFitting.ts",
    find: "if (now() >= until || record.departed)",
    replace: "if (record.departed)",
    caughtBy: ["test/services/chat/HoldFitting.test.ts"]
  },
  {
    name: "a chat is charged by the first price of its model, not by that of when it came",
    file: "src/http/chat/ChatTasks.ts",
    find: "catalog.current.findAt(asked.model, record.at)",
    replace: "catalog.current.find(asked.model)",
    caughtBy: ["test/http/chat/DatedPrices.test.ts"]
  },
  {
    name: "a chat is charged by the price of when it ends",
    file: "src/services/chat/ChatCharging.ts",
    find: "const cost = Pricing.chatCharge(model.pricing, billed)",
    replace:
      'const now = model.next !== undefined && model.next.at <= clock.unsafeCurrentTimeMillis() ? model.next.model : model\n      const cost = Pricing.chatCharge(now.surface === "chat" ? now.pricing : model.pricing, billed)',
    caughtBy: ["test/http/chat/DatedPrices.test.ts"]
  },
  {
    name: "a chat is explained by today's rates",
    file: "src/services/admin/requests/Price.ts",
    find: 'const pricing = rates ?? (model?.surface === "chat" ? model.pricing : undefined)',
    replace: 'const pricing = model?.surface === "chat" ? model.pricing : rates',
    caughtBy: ["test/services/RequestPrice.test.ts"]
  }
]
