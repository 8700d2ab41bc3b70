import { Layer } from "effect"
import { ApiKeys } from "../access/ApiKeys.ts"
import { BlockList } from "../access/BlockList.ts"
import { PriceLists } from "../catalog/PriceLists.ts"
import { RouteControls } from "../control/RouteControls.ts"
import { Instances } from "../instance/RunningGateway.ts"
import { LedgerAdmin } from "../ledger/LedgerAdmin.ts"
import { Verification } from "../ledger/Verification.ts"
import { PaymentSync } from "../payments/PaymentSync.ts"
import { Payments } from "../payments/Payments.ts"
import { Receipts } from "../payments/Receipts.ts"
import { PublishedHealth } from "../routing/PublishedHealth.ts"
import { Statements } from "../statements/Statements.ts"
import { Usage } from "../telemetry/Usage.ts"
import { Audit } from "./AuditLog.ts"
import { Dashboard } from "./Dashboard.ts"
import { Names } from "./Names.ts"
import { Operators, SignInLimiter } from "./Operators.ts"
import { Organizations } from "./Organizations.ts"
import { ReadLimiter } from "./ReadLimiter.ts"
import { VideoAdmin } from "./VideoAdmin.ts"

/** The services that both the commands and the admin API need. */
export const administration = Layer.provideMerge(
  Dashboard.layer,
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
    ReadLimiter.layer,
    Receipts.layer,
    RouteControls.layer,
    PublishedHealth.layer,
    SignInLimiter.layer,
    Statements.layer,
    Usage.layer,
    Verification.layer,
    VideoAdmin.layer,
    Organizations.layer
  )
).pipe(Layer.provideMerge(LedgerAdmin.layer))
