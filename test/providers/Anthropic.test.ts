import { chatAdapterContract } from "../contracts/ChatAdapter.ts"
import { aimock } from "./AnthropicAimock.ts"
import { own } from "./AnthropicHosts.ts"

for (const harness of [own, aimock]) chatAdapterContract(harness)
