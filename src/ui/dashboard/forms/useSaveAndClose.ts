import { useMutation } from "@tanstack/react-query"
import { isOutdated } from "../api/Client.ts"
import type { Fields } from "./merge.ts"
import type { Draft } from "./useDraft.ts"

interface Options<A extends Fields> {
  readonly save: () => Promise<unknown>
  /** Reads the stored values again. */
  readonly refresh: () => Promise<unknown>
  /** Closes the form's dialog. */
  readonly onClose: () => void
  readonly draft?: Draft<A>
}

/**
 * Saves the form of a dialog, and closes the dialog once the new values are shown. After a conflict the stored values
 * are read again, so that the next attempt is based on the current version.
 */
export const useSaveAndClose = <A extends Fields>({ draft, onClose, refresh, save }: Options<A>) =>
  useMutation({
    mutationFn: save,
    onSuccess: async () => {
      draft?.saved()
      await refresh()
      onClose()
    },
    onError: (problem) => (isOutdated(problem) ? refresh() : undefined)
  })
