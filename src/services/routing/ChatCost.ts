import type { ChatRequest } from "../../domain/Chat.ts"
import type { ChatModel, Route } from "../../domain/Model.ts"
import { boundUsage, chatCharge } from "../../domain/Pricing.ts"
import type { CostOf } from "./Attempt.ts"

/** What a failed attempt costs. */
export const chatCostOf =
  (model: ChatModel, request: ChatRequest): CostOf<Route> =>
  ({ cost }, spent) =>
    cost === undefined || spent === "whole" ? undefined : chatCharge(cost, boundUsage(spent, model, request).usage)
