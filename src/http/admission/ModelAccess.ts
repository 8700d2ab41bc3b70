import { Effect } from "effect"
import { type Caller, mayUseModel } from "../../domain/ApiKey.ts"
import { ModelNotAllowed } from "../../domain/Failure.ts"
import type { Model, Surface } from "../../domain/Model.ts"

/** Where the model can be used at all; comes before a replay, as the scope does. */
export const requireAllowed = (
  caller: Caller,
  surface: Surface,
  model: Model | undefined
): Effect.Effect<void, ModelNotAllowed> =>
  model?.surface !== surface || mayUseModel(caller, model.id) ? Effect.void : new ModelNotAllowed({ model: model.id })
