{
  description = "AI agents that answer chat messages from a knowledge base built from your own sources";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-26.05";

  outputs =
    { self, nixpkgs }:
    let
      inherit (nixpkgs) lib;
      each =
        f:
        lib.genAttrs [ "x86_64-linux" "aarch64-linux" ] (system: f system nixpkgs.legacyPackages.${system});
    in
    {
      packages = each (
        _: pkgs: {
          default = pkgs.callPackage ./nix/package.nix { };
        }
      );

      apps = each (
        system: pkgs: {
          plan = {
            type = "app";
            program = toString (
              pkgs.writeShellScript "spoke-plan" ''
                exec ${lib.getExe self.packages.${system}.default} plan "$@"
              ''
            );
            meta.description = "`spoke plan`: what a file of agents would change";
          };
          default = {
            type = "app";
            program = lib.getExe self.packages.${system}.default;
            meta.description = "The command spoke; `serve` starts the service";
          };
        }
      );

      devShells = each (
        _: pkgs: {
          default = pkgs.mkShell {
            packages = [
              pkgs.nodejs_22
              (pkgs.postgresql_17.withPackages (extensions: [ extensions.pgvector ]))
              pkgs.redis
            ];
          };
        }
      );

      formatter = each (_: pkgs: pkgs.nixfmt-tree);

      overlays.default = final: _: { spoke = final.callPackage ./nix/package.nix { }; };

      nixosModules.default = import ./nix/module.nix { inherit self; };

      checks = each (
        system: pkgs: {
          package = self.packages.${system}.default;
          units = import ./nix/units.nix { inherit self lib pkgs; };
          nixos = pkgs.testers.runNixOSTest (import ./nix/vm-test.nix { inherit self; });
        }
      );
    };
}
