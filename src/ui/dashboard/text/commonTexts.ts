/** Texts that many components use. */
import { texts } from "./Language.tsx"

export const commonTexts = texts(
  {
    cancel: "Cancel",
    close: "Close",
    copied: "Copied",
    copy: "Copy",
    create: "Create",
    delete: "Delete",
    done: "Done",
    edit: "Edit",
    failed: "That did not work",
    guide: "Guide",
    loadMore: "Load more",
    loading: "Loading …",
    more: "More actions",
    name: "Name",
    none: "None",
    refresh: "Refresh",
    required: "required",
    retry: "Try again",
    save: "Save",
    saved: "Saved",
    search: "Search",
    unreachable: "The server cannot be reached. Check your connection."
  },
  {
    cancel: "Abbrechen",
    close: "Schließen",
    copied: "Kopiert",
    copy: "Kopieren",
    create: "Anlegen",
    delete: "Löschen",
    done: "Fertig",
    edit: "Bearbeiten",
    failed: "Das hat nicht geklappt",
    guide: "Anleitung",
    loadMore: "Mehr laden",
    loading: "Lädt …",
    more: "Weitere Aktionen",
    name: "Name",
    none: "Keine",
    refresh: "Aktualisieren",
    required: "Pflichtfeld",
    retry: "Erneut versuchen",
    save: "Speichern",
    saved: "Gespeichert",
    search: "Suchen",
    unreachable: "Der Server ist nicht erreichbar. Bitte die Verbindung prüfen."
  }
)
