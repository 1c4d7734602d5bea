/** Source type IMAGE: one picture, uploaded or fetched (specification 2.5). Its bytes decide how it is read, as in FILE. */
export { reader } from "./File.ts"
