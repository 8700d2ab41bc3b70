import { Layer } from "effect"
import { ApiKeys } from "../access/ApiKeys.ts"
import { BlockList } from "../access/BlockList.ts"
import { PriceLists } from "../catalog/PriceLists.ts"
import { Instances } from "../control/Instances.ts"
import { RouteControls } from "../control/RouteControls.ts"
import { LedgerAdmin } from "../ledger/LedgerAdmin.ts"
import { Verification } from "../ledger/Verification.ts"
import { PaymentSync } from "../payments/PaymentSync.ts"
import { Payments } from "../payments/Payments.ts"
import { RouteHealth } from "../routing/RouteHealth.ts"
import { Statements } from "../statements/Statements.ts"
import { Usage } from "../telemetry/Usage.ts"
import { Audit } from "./Audit.ts"
import { Names } from "./Names.ts"
import { Now } from "./now/Now.ts"
import { Operators } from "./Operators.ts"
import { Organizations } from "./Organizations.ts"
import { ReadTurns } from "./ReadTurns.ts"
import { SignInLimiter } from "./SignInLimiter.ts"
import { VideoAdmin } from "./VideoAdmin.ts"

/** What the commands and the admin API are made of. */
export const administration = Layer.provideMerge(
  Now.layer,
  Layer.mergeAll(
    ApiKeys.layer,
    Audit.layer,
    BlockList.layer,
    Instances.layer,
    Names.layer,
    Operators.layer,
    PriceLists.layer,
    Payments.layer,
    PaymentSync.layer,
    ReadTurns.layer,
    RouteControls.layer,
    RouteHealth.layer,
    SignInLimiter.layer,
    Statements.layer,
    Usage.layer,
    Verification.layer,
    VideoAdmin.layer,
    Organizations.layer
  )
).pipe(Layer.provideMerge(LedgerAdmin.layer))
