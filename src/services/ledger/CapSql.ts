/** What an organization was charged in the running period of its cap; null without a cap. */
export const capSpent = `CASE WHEN cap_since >= cap_period_start(cap_period) THEN cap_spent WHEN cap IS NOT NULL THEN 0 END`

/** When the next period begins; null without a cap, and where none does. */
export const capResetsAt = "cap_period_end(cap_period)"
