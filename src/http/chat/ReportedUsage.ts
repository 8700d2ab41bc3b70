import { isObject, type JsonObject } from "../body/Guards.ts"

const isCost = /cost|byok/i

/** What a host reports of its own answer's usage, without what it charges for it: that is the operator's alone. */
export const reportedUsage = (usage: unknown): JsonObject =>
  isObject(usage) ? Object.fromEntries(Object.entries(usage).filter(([name]) => !isCost.test(name))) : {}
