import { chatAdapterContract } from "../../contracts/ChatAdapter.ts"
import { aimock } from "./Aimock.ts"
import { own } from "./Hosts.ts"

for (const harness of [own, aimock]) chatAdapterContract(harness)
