import type { Bug } from "./Bug.ts"

const limitSql = "src/services/ledger/LimitSql.ts"
const tokenLimiter = "src/services/access/TokenLimiter.ts"
const ofKeys = "migrations/0034_key_limits.sql"
const ofOrganizations = "migrations/0035_organization_caps.sql"
const ofTags = "migrations/0037_request_tags.sql"
const ofCounts = "migrations/0039_counts_of_media.sql"
const keyLimits = "test/services/ledger/KeyLimits.test.ts"
const organizationCaps = "test/services/ledger/OrganizationCaps.test.ts"
const model = "test/model/LimitsModel.long.test.ts"
const auth = "test/services/access/Auth.test.ts"

/** Bugs in what limits keys, organizations and tags. */
export const limitBugs: ReadonlyArray<Bug> = [
  {
    name: "a key runs one request more than its limit",
    file: limitSql,
    find: "places_used + places_up_to > place_limit",
    replace: "places_used + places_up_to > place_limit + 1",
    caughtBy: [keyLimits]
  },
  {
    name: "a hold that was released keeps its place",
    file: ofKeys,
    find: " AND h.released_at IS NULL",
    replace: "",
    caughtBy: [keyLimits]
  },
  {
    name: "videos take no place of their key",
    file: ofKeys,
    find: "h.state = 'open' AND h.instance_id IS NULL",
    replace: "h.state = 'open' AND h.instance_id IS NOT NULL",
    caughtBy: [keyLimits]
  },
  {
    name: "places are counted as they were before the statement waited",
    file: limitSql,
    find: `SELECT * FROM places_of(\${keysWith("place_limit")})`,
    replace: `SELECT key_id, count(*) AS places FROM (
      SELECT key_id FROM open_holds WHERE released_at IS NULL
      UNION ALL SELECT key_id FROM holds WHERE state = 'open' AND instance_id IS NULL
    ) AS open WHERE key_id = ANY (\${keysWith("place_limit")}) GROUP BY key_id`,
    caughtBy: [model]
  },
  {
    name: "tokens are counted as they were before the statement waited",
    file: ofKeys,
    find: "RETURNS SETOF token_windows LANGUAGE plpgsql VOLATILE",
    replace: "RETURNS SETOF token_windows LANGUAGE plpgsql STABLE",
    caughtBy: [model]
  },
  {
    name: "tokens are given back twice",
    file: tokenLimiter,
    find: "w.used - returned.amount",
    replace: "w.used - 2 * returned.amount",
    caughtBy: [keyLimits]
  },
  {
    name: "tokens are given back to a later window",
    file: tokenLimiter,
    find: "${windowOf} = returned.started",
    replace: "${windowOf} >= returned.started",
    caughtBy: [keyLimits]
  },
  {
    name: "a request that used more tokens than it took takes the rest afterwards",
    file: tokenLimiter,
    find: "if (amount <= 0 || window === undefined)",
    replace: "if (window === undefined)",
    caughtBy: [keyLimits]
  },
  {
    name: "all tokens are given back, whatever was used",
    file: "src/services/ledger/Ledger.ts",
    find: "tokens.amount - used)",
    replace: "tokens.amount)",
    caughtBy: [keyLimits]
  },
  {
    name: "a request that is refused takes tokens",
    file: limitSql,
    find: "sum(tokens) FROM admitted WHERE token_limit IS NOT NULL GROUP BY",
    replace: "sum(tokens) FROM asked WHERE NOT known AND token_limit IS NOT NULL GROUP BY",
    caughtBy: [keyLimits]
  },
  {
    name: "a statement that comes again takes tokens again",
    file: limitSql,
    find: "sum(tokens) FROM admitted WHERE token_limit IS NOT NULL GROUP BY",
    replace: `sum(tokens) FROM asked
    WHERE (known OR id IN (SELECT id FROM admitted)) AND token_limit IS NOT NULL GROUP BY`,
    caughtBy: [keyLimits]
  },
  {
    name: "a request above the limit is refused in an untouched window",
    file: limitSql,
    find: " AND tokens_used + tokens_up_to > tokens AS lacks_tokens",
    replace: " AS lacks_tokens",
    caughtBy: [keyLimits]
  },
  {
    name: "the tokens of a window that is over count",
    file: ofKeys,
    find: " AND started_at > now() - interval '60 seconds'",
    replace: "",
    caughtBy: [keyLimits]
  },
  {
    name: "a hold is refused for what others of its batch did not get",
    file: "src/services/ledger/HoldSql.ts",
    find: `row["may_fit"] === true`,
    replace: `row["may_fit"] === "true"`,
    caughtBy: [keyLimits]
  },
  {
    name: "a hold that is tried again is judged without its limits",
    file: "src/services/ledger/HoldPlacement.ts",
    find: "submit({ ...hold, rateLimit: undefined }, rounds - 1)",
    replace: "submit({ ...hold, rateLimit: undefined, limits: undefined }, rounds - 1)",
    caughtBy: [keyLimits]
  },
  {
    name: "pictures take tokens of their key",
    file: "src/services/images/ImageGenerations.ts",
    find: "id: record.id, upTo: imagePrice(variant) })",
    replace:
      "id: record.id, upTo: imagePrice(variant), tokens: record.tokens && { use: record.tokens, amount: 1_000 } })",
    caughtBy: ["test/http/admission/KeyLimits.test.ts"]
  },
  {
    name: "an organization that has spent its cap may spend a little more",
    file: limitSql,
    find: "payers.cap <= payers.cap_spent",
    replace: "payers.cap < payers.cap_spent",
    caughtBy: [organizationCaps]
  },
  {
    name: "a refund does not lower what counts for an organization's cap",
    file: ofOrganizations,
    find: "cap_spent = cap_spent + NEW.spent - OLD.spent",
    replace: "cap_spent = cap_spent",
    caughtBy: [organizationCaps]
  },
  {
    name: "a refund of an older charge lowers what counts for an organization's cap",
    file: ofOrganizations,
    find: " AND cap_since <= NEW.day",
    replace: "",
    caughtBy: [organizationCaps]
  },
  {
    name: "an organization's new period begins with the sum of the one before",
    file: ofOrganizations,
    find: "    NEW.cap_spent := 0;\n",
    replace: "",
    caughtBy: [organizationCaps]
  },
  {
    name: "an organization's cap stays reached until the first charge of a period",
    file: "src/services/ledger/CapSql.ts",
    find: "WHEN cap_since >= cap_period_start(cap_period) THEN",
    replace: "WHEN cap_since IS NOT NULL THEN",
    caughtBy: [organizationCaps]
  },
  {
    name: "gateways do not learn that an organization has a cap now",
    file: ofOrganizations,
    find: "suspended_at, fit_holds, cap ON",
    replace: "suspended_at, fit_holds ON",
    caughtBy: ["test/http/admission/OrganizationCaps.test.ts"]
  },
  {
    name: "a large body is received although the organization's cap is reached",
    file: "src/http/admission/Solvency.ts",
    find: "!isDisputed && reached === undefined && (waits",
    replace: "!isDisputed && (waits",
    caughtBy: ["test/http/admission/OrganizationCaps.test.ts"]
  },
  {
    name: "a pattern allows each model that begins like it",
    file: "src/domain/ModelPatterns.ts",
    find: " || !id.endsWith(last)",
    replace: "",
    caughtBy: ["test/domain/ModelPatterns.test.ts"]
  },
  {
    name: "a key may use each model but for those of its list",
    file: "src/http/admission/ModelAccess.ts",
    find: "|| mayUseModel(caller, model.id)",
    replace: "|| caller.models === undefined || !mayUseModel(caller, model.id)",
    caughtBy: ["test/http/admission/ModelAccess.test.ts"]
  },
  {
    name: "a secret before lives as long as its key",
    file: "src/services/access/Auth.ts",
    find: "leftMs: previousLeftMs }",
    replace: "leftMs: row.leftMs }",
    caughtBy: [auth]
  },
  {
    name: "a secret before outlives its key",
    file: "src/services/access/Auth.ts",
    find: "least(previous_expires_at, expires_at)",
    replace: "previous_expires_at",
    caughtBy: [auth]
  },
  {
    name: "a revoked key is open to its secret before",
    file: "src/services/access/Auth.ts",
    find: "api_keys.org_id AND revoked_at IS NULL\n                WHERE hash",
    replace: "api_keys.org_id\n                WHERE revoked_at IS NULL AND hash",
    caughtBy: [auth]
  },
  {
    name: "a second reissue leaves the oldest secret valid",
    file: "src/services/access/ApiKeys.ts",
    find: "previous_hash = hash`",
    replace: "previous_hash = coalesce(previous_hash, hash)`",
    caughtBy: ["test/services/access/ApiKeys.test.ts"]
  },
  {
    name: "a tag after the thousandth of a day has totals of its own",
    file: ofCounts,
    find: "coalesce(t.tag, 'other')",
    replace: "coalesce(t.tag, p.tag)",
    caughtBy: ["test/services/telemetry/UsageTags.test.ts"]
  },
  {
    name: "two writers give out the last tag of a day",
    file: ofTags,
    find: "  PERFORM pg_advisory_xact_lock(7025102617);\n",
    replace: "",
    caughtBy: ["test/services/telemetry/UsageTags.test.ts"]
  }
]
