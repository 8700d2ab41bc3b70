import type { Bug } from "./Bug.ts"
import { departureBugs } from "./DepartureBugs.ts"
import { eventBugs } from "./EventBugs.ts"
import { limitBugs } from "./LimitBugs.ts"
import { memberBugs } from "./MemberBugs.ts"
import { moneyBugs } from "./MoneyBugs.ts"
import { paymentBugs } from "./PaymentBugs.ts"
import { statementBugs } from "./StatementBugs.ts"
import { streamBugs } from "./StreamBugs.ts"
import { usageBugs } from "./UsageBugs.ts"
import { workBugs } from "./WorkBugs.ts"

/** Bugs of money and its limits first, then of streams, of reports, of routing and of decoding. */
export const bugs: ReadonlyArray<Bug> = [
  ...moneyBugs,
  ...limitBugs,
  ...paymentBugs,
  ...workBugs,
  ...departureBugs,
  ...streamBugs,
  ...usageBugs,
  ...statementBugs,
  ...eventBugs,
  ...memberBugs,
  {
    name: "a circuit never opens by failures in a row",
    file: "src/services/routing/Circuit.ts",
    find: "const failuresToOpen = 5",
    replace: "const failuresToOpen = 50",
    caughtBy: ["test/services/routing/CircuitBreaker.test.ts"]
  },
  {
    name: "a provider's Retry-After is not heeded",
    file: "src/services/routing/Circuit.ts",
    find: "this.openUntil = now + Math.max(time, retryAfterMillis)",
    replace: "this.openUntil = now + time",
    caughtBy: ["test/services/routing/CircuitBreaker.test.ts"]
  },
  {
    name: "one organization's failures open a route for all",
    file: "src/services/routing/Circuit.ts",
    find: "if (!isRequestDependent) this.#independent += 1",
    replace: "this.#independent += 1",
    caughtBy: ["test/services/routing/OrganizationCircuits.test.ts", "test/http/chat/Outcomes.test.ts"]
  },
  {
    name: "hosts that hang up on a large body count as away",
    file: "src/providers/client/Upstream.ts",
    find: "(isLarge && !unsent)",
    replace: "(isLarge && unsent)",
    caughtBy: ["test/providers/client/Upstream.test.ts"]
  },
  {
    name: "a request that alone is above the provider's limit counts as traffic",
    file: "src/services/routing/Provider.ts",
    find: "ofRequest === true || kind",
    replace: "kind",
    caughtBy: ["test/providers/client/Classification.test.ts"]
  },
  {
    name: "failures of two organizations in a row do not open a route",
    file: "src/services/routing/Circuit.ts",
    find: "org !== this.#org) this.#isOfSeveral = true",
    replace: "org !== this.#org) this.#isOfSeveral = false",
    caughtBy: ["test/services/routing/OrganizationCircuits.test.ts"]
  },
  {
    name: "a route's failures are not its organization's",
    file: "src/services/routing/CircuitBreaker.ts",
    find: "const forOne = this.#failForOne(permit, opening, isProbe)",
    replace: "const forOne = undefined",
    caughtBy: ["test/services/routing/OrganizationCircuits.test.ts", "test/http/images/Outcomes.test.ts"]
  },
  {
    name: "a 429 opens a route for one organization alone",
    file: "src/services/routing/Provider.ts",
    find: 'ofRequest === true || kind === "retry"',
    replace: 'ofRequest === true || kind === "limit" || kind === "retry"',
    caughtBy: ["test/services/routing/OrganizationCircuits.test.ts"]
  },
  {
    name: "an organization waits a minute for its last route",
    file: "src/services/routing/CircuitBreaker.ts",
    find: "if (isLast) own?.limit(lastRouteMost)",
    replace: "",
    caughtBy: ["test/services/routing/OrganizationCircuits.test.ts"]
  },
  {
    name: "circuits of organizations are never forgotten",
    file: "src/services/routing/OrganizationCircuits.ts",
    find: "this.#circuits.size <= maxOrganizations && now",
    replace: "this.#circuits.size >= 0 || now",
    caughtBy: ["test/services/routing/OrganizationCircuits.test.ts"]
  },
  {
    name: "a refused head counts against its route",
    file: "src/providers/client/Classification.ts",
    find: "new Set([400, 413, 414, 422, 431])",
    replace: "new Set([400, 413, 422])",
    caughtBy: ["test/providers/client/Classification.test.ts", "test/http/messages/Native.test.ts"]
  },
  {
    name: "any beta of a client is passed on",
    file: "src/providers/anthropic/Betas.ts",
    find: "if (harmlessBeta.test(beta)) kept.add(beta)",
    replace: "kept.add(beta)",
    caughtBy: ["test/providers/anthropic/Betas.test.ts", "test/providers/anthropic/Native.test.ts"]
  },
  {
    name: "betas in a body reach the host as they are",
    file: "src/providers/anthropic/Native.ts",
    find: '  "betas",\n',
    replace: "",
    caughtBy: ["test/providers/anthropic/Native.test.ts"]
  },
  {
    name: "counts of an organization take no turns",
    file: "src/http/messages/CountTokens.ts",
    find: "withPermitOf(record.caller.org)(count(admitted))",
    replace: "count(admitted)",
    caughtBy: ["test/http/messages/CountTokens.test.ts"]
  },
  {
    name: "a request that a provider refused goes to the next one",
    file: "src/services/routing/Failover.ts",
    find: "if (isFinal(failure.class) || this.#plan.mayTryNext",
    replace: "if (this.#plan.mayTryNext",
    caughtBy: ["test/services/routing/ProviderRouter.test.ts"]
  },
  {
    name: "a route that failed is tried again",
    file: "src/services/routing/Failover.ts",
    find: "this.#untried = this.#untried.filter((route) => route !== attempt.route)",
    replace: "this.#untried = [...this.#untried]",
    caughtBy: ["test/services/routing/ProviderRouter.test.ts"]
  },
  {
    name: "a route is asked for what it cannot do",
    file: "src/services/routing/RouteSelection.ts",
    find: "needed.every((one) => capabilities.has(one))",
    replace: "needed.some((one) => capabilities.has(one))",
    caughtBy: ["test/services/routing/RouteSelection.test.ts"]
  },
  {
    name: "a length between two goes to the longer",
    file: "src/domain/VideoRules.ts",
    find: "(Math.abs(seconds - asked) < Math.abs(best - asked)",
    replace: "(Math.abs(seconds - asked) <= Math.abs(best - asked)",
    caughtBy: ["test/domain/Video.test.ts"]
  },
  {
    name: "a cap above the model's is sent on",
    file: "src/domain/ChatRules.ts",
    find: "maxTokens: Math.min(request.maxTokens, outputCap(model, request))",
    replace: "maxTokens: request.maxTokens",
    caughtBy: ["test/domain/ChatRules.test.ts"]
  },
  {
    name: "a later zero replaces the prompt's count",
    file: "src/providers/anthropic/Stream.ts",
    find: "Predicate.isRecord(value) || asCount(value) > 0\n",
    replace: "Predicate.isRecord(value) || value !== null\n",
    caughtBy: ["test/providers/anthropic/Stream.test.ts"]
  },
  {
    name: "unreadable arguments of a tool call become none",
    file: "src/providers/chat/Answer.ts",
    find: "if (!Predicate.isRecord(value)) return undefined",
    replace: 'if (!Predicate.isRecord(value)) return ""',
    caughtBy: ["test/providers/OddAnswers.test.ts"]
  },
  {
    name: "more cached tokens than the prompt has are believed",
    file: "src/domain/Pricing.ts",
    find: "const cached = Math.min(count(usage.cached), prompt)",
    replace: "const cached = count(usage.cached)",
    caughtBy: ["test/providers/openai-chat/Response.test.ts", "test/domain/Pricing.long.test.ts"]
  },
  {
    name: "a provider that forbids the account keeps its route",
    file: "src/providers/client/Classification.ts",
    find: 'if (status === 401 || status === 402 || status === 403) return "account"',
    replace: 'if (status === 401 || status === 402) return "account"',
    caughtBy: ["test/providers/client/Classification.test.ts"]
  },
  {
    name: "a tool that costs extra reaches the vendor inside an input item",
    file: "src/providers/openai-responses/Native.ts",
    find: "...(tools !== undefined && { tools: keepTools(tools, call) })",
    replace: "...(tools !== undefined && { tools })",
    caughtBy: ["test/providers/openai-responses/Native.test.ts"]
  },
  {
    name: "a client of the Messages dialect buys a faster answer",
    file: "src/providers/anthropic/Native.ts",
    find: '  "speed",\n',
    replace: "",
    caughtBy: ["test/providers/anthropic/Native.test.ts"]
  },
  {
    name: "a vendor's ids reach the client in a reason",
    file: "src/providers/client/Reason.ts",
    find: "(?:req|resp|msg",
    replace: "(?:resp|msg",
    caughtBy: ["test/providers/client/Reason.test.ts"]
  }
]
