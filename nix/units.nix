# The texts of the units that the module makes, with everything local, in one folder: for systemd-analyze.
{
  self,
  lib,
  pkgs,
}:
let
  system = lib.nixosSystem {
    modules = [
      self.nixosModules.default
      {
        nixpkgs.hostPlatform = pkgs.stdenv.hostPlatform.system;
        services.spoke = {
          enable = true;
          workers = 2;
          secretFiles.SPOKE_SECRET = "/run/keys/spoke-secret";
          agents = import ./agents.nix;
          agentSecretFiles = {
            SPOKE_TOKEN = "/run/keys/spoke-token";
            STOCK_KEY = "/run/keys/stock";
          };
        };
      }
    ];
  };
  # Others fail here as well: this machine has no disk. Messages of those that hold are not to be read.
  failed = builtins.filter (one: !one.assertion) system.config.assertions;
  wrong = builtins.filter (one: lib.hasInfix "services.spoke" one.message) failed;
  names = [
    "spoke-agents.service"
    "spoke-api.service"
    "spoke-extension.service"
    "spoke-migrate.service"
    "spoke-worker@.service"
    "spoke.target"
  ];
in
if wrong != [ ] then
  throw (builtins.head wrong).message
else
  pkgs.runCommand "spoke-units" { } ''
    mkdir $out
    ${lib.concatStringsSep "\n" (
      map (name: "cp ${pkgs.writeText "unit" system.config.systemd.units.${name}.text} $out/${name}") names
    )}
  ''
