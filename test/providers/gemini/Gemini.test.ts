import { chatAdapterContract } from "../../contracts/ChatAdapter.ts"
import { harnesses } from "./Hosts.ts"

for (const harness of harnesses) chatAdapterContract(harness)
