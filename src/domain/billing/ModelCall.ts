/** Calls of models that belong to no turn. */
import * as Schema from "effect/Schema"

/**
 * Why the model is called: to draft a correction, to answer a question of an experiment, to describe an image of a
 * source, to judge a reply by the criterion of a case, to name groups of questions, or to replay a turn. A model call
 * that checks an answer has the kind of the answer.
 */
export const ModelCallKind = Schema.Literal("draft", "experiment", "image", "judge", "name", "replay")
export type ModelCallKind = typeof ModelCallKind.Type
