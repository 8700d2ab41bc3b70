import { videoAdapterContract } from "../../contracts/VideoAdapter.ts"
import { harness } from "./Hosts.ts"

videoAdapterContract(harness)
