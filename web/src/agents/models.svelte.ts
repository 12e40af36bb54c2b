/** The models that an agent may use: the adapter's own list until the runtime has answered. */

import { type ApiError, query, request } from "../api/client";
import type { Adapter, ModelList } from "../api/types";

export class ModelChoice {
  told = $state.raw<ModelList | null>(null);
  asking = $state(false);
  /** Why there is no answer at all. */
  refused = $state<string | null>(null);
  #asked = 0;

  /** Ask the runtime, with the configuration of an agent that exists; a newer question wins. */
  async ask(adapter: Adapter, agentId: string | null, refresh = false): Promise<void> {
    const turn = ++this.#asked;
    if (this.told?.type !== adapter.type) this.told = null;
    this.refused = null;
    this.asking = true;
    try {
      const path = `/api/adapters/${adapter.type}/models`;
      const told = await request<ModelList>(
        path + query({ agentId, refresh: refresh ? "1" : null }),
      );
      if (turn === this.#asked) this.told = told;
    } catch (error) {
      if (turn === this.#asked) this.refused = (error as ApiError).message;
    } finally {
      if (turn === this.#asked) this.asking = false;
    }
  }

  /** There is nothing to choose: the form has no field for a model. */
  forget(): void {
    this.#asked += 1;
    this.told = null;
    this.refused = null;
    this.asking = false;
  }
}
